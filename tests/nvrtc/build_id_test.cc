#include "compiler/nvrtc/build_id.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/base/file.h"
#include "runtime/base/sha256.h"
#include "tests/support/status_matchers.h"

namespace fusiond::nvrtc {
namespace {

using ::fusiond::testing::IsOk;
using ::fusiond::testing::StatusIs;

template <typename T>
std::string Bytes(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string Note(uint32_t type, std::string name, std::string description) {
  Elf64_Nhdr header{.n_namesz = static_cast<uint32_t>(name.size()),
                    .n_descsz = static_cast<uint32_t>(description.size()),
                    .n_type = type};
  name.resize((name.size() + 3) & ~size_t{3});
  description.resize((description.size() + 3) & ~size_t{3});
  return Bytes(header) + name + description;
}

// An ELF-64 file that consists of one note segment.
std::string Elf(const std::string& notes, uint64_t claimed_bytes) {
  Elf64_Ehdr elf{};
  std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
  elf.e_ident[EI_CLASS] = ELFCLASS64;
  elf.e_phoff = sizeof(elf);
  elf.e_phentsize = sizeof(Elf64_Phdr);
  elf.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof(elf) + sizeof(segment);
  segment.p_filesz = claimed_bytes;
  return Bytes(elf) + Bytes(segment) + notes;
}

class BuildIdTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& bytes) {
    std::string path = absl::StrCat(::testing::TempDir(), "build_id_test.so.", ::getpid());
    EXPECT_THAT(base::WriteFileAtomically(path, bytes), IsOk());
    return path;
  }
  static std::string Sha(const std::string& bytes) { return "sha256:" + base::Sha256(bytes).Hex(); }

  const std::string gnu_ = std::string("GNU", 4);
};

TEST_F(BuildIdTest, GnuNoteIsFoundAmongOthers) {
  std::string notes = Note(5, gnu_, "props") + Note(NT_GNU_BUILD_ID, "CORE", "xxxx") +
                      Note(NT_GNU_BUILD_ID, gnu_, "\x01\x02\xab");
  ASSERT_OK_AND_ASSIGN(std::string id, LibraryBuildId(Write(Elf(notes, notes.size()))));
  EXPECT_EQ(id, "0102ab");
}

TEST_F(BuildIdTest, FileWithoutNoteIsHashed) {
  for (const std::string& bytes :
       {std::string(), std::string("text"), Elf("", 0), Elf(Note(5, gnu_, "props"), 24)}) {
    ASSERT_OK_AND_ASSIGN(std::string id, LibraryBuildId(Write(bytes)));
    EXPECT_EQ(id, Sha(bytes));
  }
}

TEST_F(BuildIdTest, DamagedNoteIsHashed) {
  std::string note = Note(NT_GNU_BUILD_ID, gnu_, "\x01\x02\xab");
  std::string long_name = note;
  std::memset(long_name.data(), 0xff, 4);
  std::string long_description = note;
  std::memset(long_description.data() + 4, 0xff, 4);
  for (const std::string& bytes :
       {Elf(note, note.size() + 1), Elf(note, uint64_t{1} << 60), Elf(long_name, note.size()),
        Elf(long_description, note.size()), Elf(note, 6), Elf(note, note.size()).substr(0, 70)}) {
    ASSERT_OK_AND_ASSIGN(std::string id, LibraryBuildId(Write(bytes)));
    EXPECT_EQ(id, Sha(bytes));
  }
}

TEST_F(BuildIdTest, MissingFileIsNotFound) {
  EXPECT_THAT(LibraryBuildId("/nonexistent/lib.so"), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace fusiond::nvrtc
