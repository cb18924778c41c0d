#include "data/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/files.h"

namespace cnn::data {
namespace {

using Kind = PickleValue::Kind;
using testing::HasSubstr;

Pickle parse(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return Pickle({bytes.begin(), bytes.end()});
}

std::string unpickling_error(const std::string& text) {
  return error_of([&] { parse(text); });
}

std::int64_t integer_of(const std::string& text) {
  const Pickle pickle = parse(text);
  EXPECT_EQ(pickle.root().kind, Kind::integer);
  return pickle.root().integer;
}

std::string text_of(const std::string& text) { return std::string(parse(text).root().text()); }

// Returns the opcodes of a short text.
std::string short_text(const std::string& text) {
  return "U" + std::string(1, static_cast<char>(text.size())) + text;
}

TEST(Pickle, ReadsEveryFormOfInteger) {
  EXPECT_EQ(integer_of("K\xff."), 255);
  EXPECT_EQ(integer_of("M\x01\x02."), 513);
  EXPECT_EQ(integer_of("J" + little_endian(0xFFFFFFFE, 4) + "."), -2);
  EXPECT_EQ(integer_of(std::string("\x8a\x00.", 3)), 0);
  EXPECT_EQ(integer_of("\x8a\x01\xff."), -1);
  EXPECT_EQ(integer_of("\x8a\x02\xff\x7f."), 32767);
  EXPECT_EQ(integer_of("\x8a\x08" + little_endian(1ULL << 63U, 8) + "."), INT64_MIN);
  EXPECT_EQ(integer_of("\x88."), 1);
  EXPECT_EQ(integer_of("\x89."), 0);
  EXPECT_EQ(parse("N.").root().kind, Kind::none);
}

TEST(Pickle, ReadsEveryFormOfText) {
  EXPECT_EQ(text_of("U\x02hi."), "hi");
  EXPECT_EQ(text_of("C\x02hi."), "hi");
  EXPECT_EQ(text_of("\x8c\x02hi."), "hi");
  EXPECT_EQ(text_of("T" + little_endian(2, 4) + "hi."), "hi");
  EXPECT_EQ(text_of("B" + little_endian(2, 4) + "hi."), "hi");
  EXPECT_EQ(text_of("X" + little_endian(2, 4) + "hi."), "hi");
  EXPECT_EQ(text_of("\x8d" + little_endian(2, 8) + "hi."), "hi");
  EXPECT_EQ(text_of("\x8e" + little_endian(2, 8) + "hi."), "hi");
  EXPECT_EQ(text_of("\x96" + little_endian(2, 8) + "hi."), "hi");
}

// Python 3 writes bytes so in protocol 2: _codecs.encode(text, 'latin1').
std::string latin1_call(const std::string& utf8, const std::string& encoding = "latin1") {
  return "c_codecs\nencode\nX" + little_endian(utf8.size(), 4) + utf8 + "X" +
         little_endian(encoding.size(), 4) + encoding + "\x86R";
}

TEST(Pickle, ReadsTheBytesThatPython3WritesInProtocol2) {
  EXPECT_EQ(text_of(latin1_call("a\xc2\x80\xc3\xbf") + "."), "a\x80\xff");
  EXPECT_EQ(text_of(latin1_call("") + "."), "");
  for (const char* const broken : {"\xc4\x80", "\xc3", "\xff", "\xc2z"}) {
    EXPECT_THAT(unpickling_error(latin1_call(broken) + "."), HasSubstr("not Latin-1")) << broken;
  }
  EXPECT_THAT(unpickling_error(latin1_call("a", "utf-8") + "."), HasSubstr("latin1"));
}

// A remembered text may be encoded only as often as the file is long.
TEST(Pickle, TakesNoMemoryForATextThatIsEncodedAgainAndAgain) {
  std::string file = "(X" + little_endian(1000, 4) + std::string(1000, 'x') + "q\x01";
  for (int i = 0; i < 100; ++i) {
    file += "c_codecs\nencode\nh\x01U\x06latin1\x86R";
  }
  EXPECT_THAT(unpickling_error(file + "t."), HasSubstr("encodes more text than it has"));
}

TEST(Pickle, BuildsContainersWithAndWithoutMarks) {
  const Pickle pickle = parse(
      "]K\x01"
      "aK\x02"
      "a.");
  EXPECT_EQ(pickle.root().kind, Kind::list);
  ASSERT_EQ(pickle.root().items.size(), 2U);
  EXPECT_EQ(pickle.at(pickle.root().items[1]).integer, 2);
  EXPECT_EQ(parse("](K\x01K\x02K\x03"
                  "e.")
                .root()
                .items.size(),
            3U);
  EXPECT_EQ(parse("K\x01K\x02\x86.").root().items.size(), 2U);
  EXPECT_EQ(parse("(K\x01K\x02t.").root().kind, Kind::tuple);
  EXPECT_EQ(parse(").").root().kind, Kind::tuple);
}

TEST(Pickle, FindsKeysWrittenAsBytesOrText) {
  const Pickle pickle = parse(
      "}U\x01"
      "aK\x01s(\x8c\x01"
      "bK\x02"
      "C\x01"
      "aK\x03u.");
  EXPECT_EQ(pickle.find(pickle.root(), "a")->integer, 3);  // the later entry wins
  EXPECT_EQ(pickle.find(pickle.root(), "b")->integer, 2);
  EXPECT_EQ(pickle.find(pickle.root(), "c"), nullptr);
  const Pickle list = parse("].");
  EXPECT_EQ(list.find(list.root(), "a"), nullptr);
}

TEST(Pickle, RecallsWhatItRemembers) {
  EXPECT_EQ(integer_of("K\x05q\x01h\x01."), 5);
  EXPECT_EQ(integer_of("K\x05r" + little_endian(70000, 4) + "j" + little_endian(70000, 4) + "."),
            5);
  EXPECT_EQ(integer_of("K\x05\x94h" + std::string(1, '\0') + "."), 5);
  EXPECT_THAT(unpickling_error("h\x01."), HasSubstr("never remembered"));
}

TEST(Pickle, CallsNothingButNamesWhatItWasAskedFor) {
  EXPECT_THAT(unpickling_error("cos\nsystem\n" + short_text("true") + "\x85R."),
              HasSubstr("os.system"));
  EXPECT_THAT(unpickling_error("\x80\x04\x8c\x08"
                               "builtins\x8c\x04"
                               "eval\x93."),
              HasSubstr("builtins.eval"));
  EXPECT_THAT(unpickling_error("cnumpy\nload\n."), HasSubstr("numpy.load"));
  EXPECT_THAT(unpickling_error("cnumpy\nndarray\n)R."), HasSubstr("numpy.ndarray"));
  EXPECT_THAT(unpickling_error("c_codecs\ndecode\n."), HasSubstr("_codecs.decode"));
  EXPECT_THAT(unpickling_error("c\x1b[2J\nx\n."),
              HasSubstr("?[2J.x"));  // replaces control characters for the terminal
  EXPECT_THAT(unpickling_error(")\x81."), HasSubstr("opcode 129 at byte 1"));  // the opcode NEWOBJ
  EXPECT_THAT(unpickling_error("\xfe."), HasSubstr("opcode 254 at byte 0"));
}

TEST(Pickle, SaysWhichPicklesItReadsWhereOneIsText) {
  for (const char* text : {"I1\n.", "S'a'\n.", "(lp0\n.", "P1\n.", "(S'x'\nios\nsystem\n."}) {
    EXPECT_THAT(unpickling_error(text), HasSubstr("in a binary protocol")) << text;
  }
}

TEST(Pickle, RejectsWhatIsCutOff) {
  for (const char* text : {"", "N", "(", "K", "M\x01", "c", "cos\nsys", "U\x02h", "\x80"}) {
    EXPECT_THAT(unpickling_error(text), HasSubstr("cut off")) << text;
  }
  EXPECT_THAT(unpickling_error("N.N"), HasSubstr("ends before its file"));
}

TEST(Pickle, NeverReadsByALyingLength) {
  EXPECT_THAT(unpickling_error("T" + little_endian(0xFFFFFFFF, 4) + "hi."), HasSubstr("cut off"));
  EXPECT_THAT(unpickling_error("\x8e" + little_endian(~0ULL, 8) + "hi."), HasSubstr("cut off"));
  EXPECT_THAT(unpickling_error("\x8a\xff."), HasSubstr("64 bits"));
  EXPECT_THAT(unpickling_error("\x80\x04\x95" + little_endian(~0ULL, 8) + "N."),
              HasSubstr("frame"));
}

TEST(Pickle, RejectsAStackThatDoesNotFit) {
  EXPECT_THAT(unpickling_error("."), HasSubstr("stack is empty"));
  // The mark hides the value below it.
  EXPECT_THAT(unpickling_error("K\x01(\x85."), HasSubstr("stack is empty"));
  EXPECT_THAT(unpickling_error("t."), HasSubstr("no mark"));
  EXPECT_THAT(unpickling_error("NNa."), HasSubstr("adds to"));
  EXPECT_THAT(unpickling_error("](NNu."), HasSubstr("adds to"));
  EXPECT_THAT(unpickling_error("}(Nu."), HasSubstr("key without a value"));
  EXPECT_THAT(unpickling_error("N)b."), HasSubstr("object with a state"));
  EXPECT_THAT(unpickling_error("N)R."), HasSubstr("what is called"));
}

// Returns the call numpy.core.numeric._frombuffer(b'abcdef', dtype, shape, order) as opcodes.
std::string array(const std::string& shape, const std::string& type, const char* order = "C") {
  return "cnumpy.core.numeric\n_frombuffer\n(" + short_text("abcdef") + "cnumpy\ndtype\n" +
         short_text(type) + "\x85R(" + shape + "t" + short_text(order) + "tR.";
}

TEST(Pickle, ReadsAnArrayWhoseShapeAgrees) {
  const Pickle pickle = parse(array("K\x02K\x03", "u1"));
  EXPECT_EQ(pickle.root().kind, Kind::array);
  EXPECT_EQ(pickle.root().shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(pickle.root().text(), "abcdef");
  EXPECT_EQ(pickle.root().element_type, "u1");
  EXPECT_FALSE(pickle.root().fortran);
  EXPECT_EQ(parse(array("K\x03", "u2")).root().shape, (std::vector<std::int64_t>{3}));
  EXPECT_TRUE(parse(array("K\x06", "u1", "F")).root().fortran);
}

TEST(Pickle, RejectsArraysWhoseShapeDoesNotAgree) {
  EXPECT_THAT(unpickling_error(array("K\x02K\x04", "u1")),
              HasSubstr("needs 8 bytes, but it has 6"));
  EXPECT_THAT(unpickling_error(array("\x8a\x01\xff\x8a\x01\xfa", "u1")),
              HasSubstr("negative dimension"));
  const std::string huge = "\x8a\x05" + little_endian(1ULL << 32U, 5);
  EXPECT_THAT(unpickling_error(array(huge + huge, "u1")), HasSubstr("larger than memory"));
  EXPECT_THAT(unpickling_error(array("N", "u1")), HasSubstr("dimension"));
  EXPECT_THAT(unpickling_error(array("K\x06", "O")), HasSubstr("'O', which is not a plain number"));
  EXPECT_THAT(unpickling_error(array("K\x06", "U1")), HasSubstr("'U1'"));
  EXPECT_THAT(unpickling_error(array("K\x06", "u1", "A")), HasSubstr("no known order"));
}

TEST(Pickle, BoundsTheMemoryThatAFileCanTake) {
  EXPECT_THAT(unpickling_error(std::string(250'001, 'N') + "."), HasSubstr("250000 values"));
  EXPECT_THAT(unpickling_error("N" + std::string(250'001, '\x94') + "."),
              HasSubstr("250000 values"));
  EXPECT_THAT(unpickling_error(std::string(250'001, '(') + "."), HasSubstr("250000 open marks"));
  std::string again = "Nq\1";
  for (int i = 0; i < 250'000; ++i) {
    again += "h\1";
  }
  EXPECT_THAT(unpickling_error(again + "."), HasSubstr("stack has more than 250000"));
}

TEST(Pickle, TakesDeepNestingAndCyclesWithoutRecursion) {
  EXPECT_EQ(parse(std::string(100'000, ']') + std::string(99'999, 'a') + ".").root().kind,
            Kind::list);
  EXPECT_EQ(parse("]q\x01h\x01"
                  "a.")
                .root()
                .items.size(),
            1U);  // a list that contains itself
}

}  // namespace
}  // namespace cnn::data
