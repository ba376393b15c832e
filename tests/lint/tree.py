"""The files a lint looks at: what git tracks or would track; without git, everything but build output."""
import os
import subprocess

CXX = (".h", ".cc", ".cuh")


class Tree:
    """A checkout: relative paths of its files, and their text."""

    def __init__(self, root):
        self.root = os.path.abspath(root)
        self.files = sorted(self._list())

    def _list(self):
        git = subprocess.run(
            ["git", "-C", self.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True, check=False) if os.path.exists(os.path.join(self.root, ".git")) else None
        if git is not None and git.returncode == 0:
            names = set(git.stdout.decode().split("\0")) - {""}
            return [n for n in names if os.path.isfile(os.path.join(self.root, n))]
        found = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = [f for f in folders if f not in ("build", ".git", "__pycache__")]
            found += [os.path.relpath(os.path.join(folder, n), self.root) for n in names]
        return found

    def select(self, *endings):
        return [f for f in self.files if f.endswith(endings)]

    def text(self, name):
        with open(os.path.join(self.root, name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def lines(self, name):
        return enumerate(self.text(name).splitlines(), start=1)
