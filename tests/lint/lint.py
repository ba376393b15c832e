"""lint.py NAME ROOT [BUILD]: runs one lint over the checkout at ROOT; prints its findings; exits 1 if there are any."""
import sys

import rules
import tools
from tree import Tree

LINTS = {
    "top_level": rules.top_level,
    "includes": rules.includes,
    "sources": rules.sources,
    "locks": rules.locks,
    "words": rules.words,
    "own_header_first": rules.own_header_first,
    "format": tools.format_clean,
    "scripts": tools.scripts,
    "headers": tools.headers,
}


def main():
    name, root, *build = sys.argv[1:]
    tree = Tree(root)
    if not tree.files:
        print(f"no files under {root}")
        return 1
    findings = LINTS[name](tree, *build)
    print("\n".join(findings) or f"{name}: clean")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
