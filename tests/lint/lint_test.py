"""Each lint must fail on a planted violation and pass on the same file mended."""
import json
import os
import shutil
import tempfile
import unittest

import rules
import tools
from tree import Tree

TABLE = """
vendor absl absl/
vendor leveldb leveldb/
target base runtime/base/* : absl
target ir compiler/ir/* : base
target passes compiler/passes/* : ir
target cache server/cache/* : base leveldb
target tests tests/* : *
"""


class LintTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def tree(self, **files):
        """A tree of the given files; in names, __ stands for / and _dot_ for '.'."""
        shutil.rmtree(self.root)
        for name, text in files.items():
            path = os.path.join(self.root, name.replace("__", "/").replace("_dot_", "."))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return Tree(self.root)

    def assert_one(self, findings, part):
        self.assertEqual(len(findings), 1, findings)
        self.assertIn(part, findings[0])

    def test_top_level(self):
        self.assert_one(rules.top_level(self.tree(docs__a_dot_md="", README_dot_md="")), "docs")
        self.assertEqual(rules.top_level(self.tree(tests__a_dot_md="", README_dot_md="", _dot_gitignore="")), [])

    def test_includes(self):
        def check(name, line):
            return rules.includes(self.tree(**{name: line + "\n"}), TABLE)
        self.assert_one(check("compiler__ir__a_dot_h", '#include "compiler/passes/b.h"'), "ir may not include passes")
        self.assert_one(check("compiler__ir__a_dot_h", "#include <leveldb/db.h>"), "ir may not include leveldb")
        self.assert_one(check("compiler__ir__a_dot_h", '#  include "b.h"'), "not rooted")
        self.assert_one(check("elsewhere__a_dot_h", ""), "no line")
        self.assertEqual(check("compiler__passes__a_dot_cc", '#include "runtime/base/b.h"\n#include <vector>'), [])
        self.assertEqual(check("compiler__passes__a_dot_cc", '#include "absl/types/span.h"'), [])  # through ir, base
        self.assertEqual(check("tests__ir__a_test_dot_cc", '#include "server/cache/b.h"'), [])
        with self.assertRaises(ValueError):
            rules.IncludeTable("target a a/* : nothing")

    def test_sources(self):
        top = "add_subdirectory(runtime)"
        self.assert_one(rules.sources(self.tree(runtime__a_dot_cc="", runtime__CMakeLists_dot_txt="# a.cc",
                                                CMakeLists_dot_txt=top)), "listed in no")
        self.assert_one(rules.sources(self.tree(runtime__CMakeLists_dot_txt="file(GLOB x *)",
                                                CMakeLists_dot_txt=top)), "globs")
        self.assert_one(rules.sources(self.tree(runtime__CMakeLists_dot_txt="", CMakeLists_dot_txt="")), "reaches")
        self.assertEqual(rules.sources(self.tree(proto__v1__a_dot_proto="", proto__targets_dot_cmake="l(proto/v1/a.proto)",
                                                 CMakeLists_dot_txt="include(proto/targets.cmake)")), [])
        self.assertEqual(rules.sources(self.tree(runtime__x__a_dot_cc="", runtime__CMakeLists_dot_txt="l(x/a.cc)",
                                                 CMakeLists_dot_txt=top)), [])

    def test_locks(self):
        self.assert_one(rules.locks(self.tree(server__a_dot_h="  absl::Mutex mu_;")), "server/a.h:1")
        self.assert_one(rules.locks(self.tree(server__a_dot_cc="\nstd::lock_guard<std::mutex> l(m);")), "server/a.cc:2")
        self.assertEqual(rules.locks(self.tree(runtime__base__mutex_dot_h="absl::Mutex mu_;",
                                               server__a_dot_h="base::Mutex mu_;  // not absl::Mutex")), [])

    def test_words(self):
        for planted in ("// TO" "DO: later", "TEST(A, DIS" "ABLED_B)", "see ../sha" "red/x", "cd /wo" "rk/main"):
            self.assert_one(rules.words(self.tree(runtime__a_dot_cc=planted)), "runtime/a.cc:1")
        self.assertEqual(rules.words(self.tree(runtime__a_dot_cc="ThreadWork/work, a method of XXXL size")), [])

    def test_own_header_first(self):
        good = '// x\n#include "runtime/a.h"\n#include <vector>\n'
        bad = '#include <vector>\n#include "runtime/a.h"\n'
        self.assert_one(rules.own_header_first(self.tree(runtime__a_dot_cc=bad, runtime__a_dot_h="")), "first include")
        self.assertEqual(rules.own_header_first(self.tree(runtime__a_dot_cc=good, runtime__a_dot_h="")), [])
        self.assertEqual(rules.own_header_first(self.tree(runtime__main_dot_cc=bad)), [])

    def test_format(self):
        style = "BasedOnStyle: Google\n"
        self.assertNotEqual(tools.format_clean(self.tree(a_dot_h="int  a ;\n", **{"_dot_clang-format": style})), [])
        self.assertEqual(tools.format_clean(self.tree(a_dot_h="int a;\n", **{"_dot_clang-format": style})), [])

    def test_scripts(self):
        self.assertNotEqual(tools.scripts(self.tree(deploy__a_dot_sh="if then\n")), [])
        self.assertNotEqual(tools.scripts(self.tree(tests__a_dot_py="def (:\n")), [])
        self.assertEqual(tools.scripts(self.tree(deploy__a_dot_sh="true\n", tests__a_dot_py="a = 1\n")), [])

    def test_headers(self):
        def check(text):
            tree = self.tree(runtime__alone_dot_h=text, runtime__b_dot_cc="", runtime__b_dot_h="not C++")
            source = os.path.join(self.root, "runtime/b.cc")
            with open(os.path.join(self.root, "compile_commands.json"), "w", encoding="utf-8") as file:
                json.dump([{"directory": self.root, "file": source,
                            "command": f"c++ -std=c++20 -o b.o -c {source}"}], file)
            return tools.headers(tree, self.root)
        self.assert_one(check("inline std::string A() { return {}; }"), "runtime/alone.h:1: does not compile alone")
        self.assertEqual(check("#include <string>\ninline std::string A() { return {}; }"), [])


if __name__ == "__main__":
    unittest.main()
