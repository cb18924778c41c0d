#include "data/imagenet/image_files.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/data/files.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> paths_of(const ImageFolder& folder) {
  std::vector<std::string> paths;
  for (const ImageFile& file : folder.files) {
    paths.push_back(fs::relative(folder.path(file), folder.root).string());
  }
  return paths;
}

std::vector<int> labels_of(const ImageFolder& folder) {
  std::vector<int> labels;
  for (const ClassFolder& one : folder.classes) {
    labels.push_back(one.label);
  }
  return labels;
}

TEST(ImageFolderOf, PrefersValToValidationForEvaluation) {
  const TemporaryFolder folder;
  folder.write("train/x", "");
  folder.write("validation/x", "");
  EXPECT_EQ(image_folder_of(folder.path(), true), folder.path() / "train");
  EXPECT_EQ(image_folder_of(folder.path(), false), folder.path() / "validation");
  folder.write("val/x", "");
  EXPECT_EQ(image_folder_of(folder.path(), false), folder.path() / "val");
}

TEST(ImageFolderOf, NamesBothLayoutsWhereThereIsNone) {
  const TemporaryFolder folder;
  folder.write("val", "a file is no folder");
  EXPECT_THAT(error_of([&] { image_folder_of(folder.path(), false); }),
              AllOf(HasSubstr("--data_dir=" + folder.path().string()),
                    HasSubstr("validation-*-of-*"), HasSubstr("a folder val")));
}

TEST(ListImageFolder, LeavesHiddenFilesAndFoldersOut) {
  const TemporaryFolder folder;
  for (const char* const name : {"a/1.jpg", "a/._1.jpg", "a/.2.png", ".b/3.jpg"}) {
    folder.write(name, "");
  }
  EXPECT_THAT(paths_of(list_image_folder(folder.path(), "", 2)), ElementsAre("a/1.jpg"));
}

TEST(ListImageFolder, OrdersFilesByClassAndThenByName) {
  const TemporaryFolder folder;
  for (const char* const name : {"b/2.jpg", "b/10.JPEG", "a/z.png", "a/y.jpg"}) {
    folder.write(name, "");
  }
  const ImageFolder listed = list_image_folder(folder.path(), "", 2);
  EXPECT_THAT(paths_of(listed), ElementsAre("a/y.jpg", "a/z.png", "b/10.JPEG", "b/2.jpg"));
  EXPECT_THAT(labels_of(listed), ElementsAre(1, 2));
}

TEST(ListImageFolder, LeavesOutOtherFilesAndHiddenFolders) {
  const TemporaryFolder folder;
  for (const char* const name : {"a/1.jpg", "a/notes.txt", "a/jpg", ".trash/1.jpg", "list.jpg"}) {
    folder.write(name, "");
  }
  EXPECT_THAT(paths_of(list_image_folder(folder.path(), "", 9)), ElementsAre("a/1.jpg"));
}

TEST(ListImageFolder, LabelsFoldersByTheirLineOfTheClassList) {
  const TemporaryFolder folder, lists;
  folder.write("cat/1.jpg", "");
  folder.write("dog/1.jpg", "");
  const std::string list = lists.write("list", "dog\r\n\nowl  \ncat\n").string();
  EXPECT_THAT(labels_of(list_image_folder(folder.path(), list, 3)), ElementsAre(3, 1));
}

TEST(ListImageFolder, RefusesAClassThatTheListLacksOrHasTwice) {
  const TemporaryFolder folder, lists;
  folder.write("cat/1.jpg", "");
  const std::string without = lists.write("without", "dog\n").string();
  EXPECT_THAT(error_of([&] { list_image_folder(folder.path(), without, 9); }),
              AllOf(HasSubstr("--class_list=" + without), HasSubstr("the class cat")));
  const std::string twice = lists.write("twice", "cat\ndog\ncat\n").string();
  EXPECT_THAT(error_of([&] { list_image_folder(folder.path(), twice, 9); }),
              AllOf(HasSubstr("--class_list=" + twice), HasSubstr("the class cat twice")));
}

TEST(ListImageFolder, RefusesMoreClassesThanThereAreLabels) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg", "");
  folder.write("b/1.jpg", "");
  EXPECT_THAT(error_of([&] { list_image_folder(folder.path(), "", 1); }),
              AllOf(HasSubstr("the class b of label 2"), HasSubstr("at most 1")));
}

TEST(ListImageFolder, RefusesFoldersWithoutClassesOrImages) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { list_image_folder(folder.path(), "", 9); }),
              HasSubstr("has no folders, one for each class"));
  folder.write("a/readme.md", "");
  EXPECT_THAT(error_of([&] { list_image_folder(folder.path(), "", 9); }),
              HasSubstr("hold no files that end with .jpg, .jpeg or .png"));
  EXPECT_THAT(error_of([&] { list_image_folder(folder.path() / "none", "", 9); }),
              HasSubstr("cannot read the folder"));
}

}  // namespace
}  // namespace cnn::data
