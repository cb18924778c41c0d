#include "data/pickle.h"

#include <cmath>
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

std::string error_for(const std::string& text) {
  return error_of([&] { parse(text); });
}

std::int64_t integer_of(const std::string& text) {
  const Pickle pickle = parse(text);
  EXPECT_EQ(pickle.root().kind, Kind::integer);
  return pickle.root().integer;
}

std::string text_of(const std::string& text) { return std::string(parse(text).root().text()); }

TEST(Pickle, ReadsEveryFormOfInteger) {
  EXPECT_EQ(integer_of("I-12\n."), -12);
  EXPECT_EQ(integer_of("L123456789012L\n."), 123456789012);
  EXPECT_EQ(integer_of("K\xff."), 255);
  EXPECT_EQ(integer_of("M\x01\x02."), 513);
  EXPECT_EQ(integer_of("J" + little_endian(0xFFFFFFFE, 4) + "."), -2);
  EXPECT_EQ(integer_of(std::string("\x8a\x00.", 3)), 0);
  EXPECT_EQ(integer_of("\x8a\x01\xff."), -1);
  EXPECT_EQ(integer_of("\x8a\x02\xff\x7f."), 32767);
  EXPECT_EQ(integer_of("\x8b" + little_endian(3, 4) + "\x01\x01\x01."), 65793);
}

TEST(Pickle, ReadsTruthNothingAndReals) {
  EXPECT_EQ(parse("I01\n.").root().kind, Kind::boolean);
  EXPECT_EQ(parse("I01\n.").root().integer, 1);
  EXPECT_EQ(parse("I00\n.").root().integer, 0);
  EXPECT_EQ(parse("\x88.").root().integer, 1);
  EXPECT_EQ(parse("N.").root().kind, Kind::none);
  EXPECT_EQ(parse("F-2.5\n.").root().real, -2.5);
  EXPECT_EQ(parse(std::string("G\x3f\xf8\0\0\0\0\0\0.", 10)).root().real, 1.5);
  EXPECT_TRUE(std::isnan(parse("Fnan\n.").root().real));
}

TEST(Pickle, ReadsEveryFormOfText) {
  EXPECT_EQ(text_of(R"(S'a\x41\'\\\n'
.)"),
            "aA'\\\n");
  EXPECT_EQ(text_of("S\"it's\"\n."), "it's");
  EXPECT_EQ(text_of("V\xe9\\u20ac\\U0001F600\n."), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
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

TEST(Pickle, BuildsContainersWithAndWithoutMarks) {
  const Pickle pickle = parse("(lp0\nI1\naI2\na.");
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
  EXPECT_EQ(parse("(K\x01"
                  "0).")
                .root()
                .kind,
            Kind::tuple);
}

TEST(Pickle, FindsKeysWrittenAsBytesOrText) {
  const Pickle pickle = parse("(dS'a'\nI1\nsVb\nI2\nsS'a'\nI3\ns.");
  EXPECT_EQ(pickle.find(pickle.root(), "a")->integer, 3);  // the later one
  EXPECT_EQ(pickle.find(pickle.root(), "b")->integer, 2);
  EXPECT_EQ(pickle.find(pickle.root(), "c"), nullptr);
  const Pickle list = parse("].");
  EXPECT_EQ(list.find(list.root(), "a"), nullptr);
}

TEST(Pickle, RecallsWhatItRemembers) {
  EXPECT_EQ(parse("K\x05q\x01"
                  "0h\x01.")
                .root()
                .integer,
            5);
  EXPECT_EQ(parse("K\x05\x94"
                  "0h" +
                  std::string(1, '\0') + ".")
                .root()
                .integer,
            5);
  EXPECT_EQ(parse("I5\np7\n0g7\n.").root().integer, 5);
  EXPECT_THAT(error_for("h\x01."), HasSubstr("never remembered"));
}

TEST(Pickle, CallsNothingButNamesWhatItWasAskedFor) {
  EXPECT_THAT(error_for("cos\nsystem\n(S'true'\ntR."), HasSubstr("os.system"));
  EXPECT_THAT(error_for("\x80\x04\x8c\x08"
                        "builtins\x8c\x04"
                        "eval\x93."),
              HasSubstr("builtins.eval"));
  EXPECT_THAT(error_for("cnumpy\nload\n."), HasSubstr("numpy.load"));
  EXPECT_THAT(error_for("cnumpy\nndarray\n)R."), HasSubstr("numpy.ndarray"));
  EXPECT_THAT(error_for("c\x1b[2J\nx\n."), HasSubstr("?[2J.x"));  // no control bytes to a terminal
  EXPECT_THAT(error_for("(S'x'\nios\nsystem\n."), HasSubstr("INST"));
  EXPECT_THAT(error_for(")\x81."), HasSubstr("NEWOBJ"));
  EXPECT_THAT(error_for("P1\n."), HasSubstr("PERSID"));
  EXPECT_THAT(error_for("\x97."), HasSubstr("NEXT_BUFFER"));
  EXPECT_THAT(error_for("\xfe."), HasSubstr("0xfe at byte 0"));
}

TEST(Pickle, RejectsWhatIsCutOff) {
  for (const char* text : {"", "N", "(", "K", "M\x01", "I12", "c", "cos\nsys", "S'a'", "\x80"}) {
    EXPECT_THAT(error_for(text), HasSubstr("cut off")) << text;
  }
  EXPECT_THAT(error_for("N.N"), HasSubstr("ends before its file"));
}

TEST(Pickle, NeverReadsByALyingLength) {
  EXPECT_THAT(error_for("T" + little_endian(0xFFFFFFFF, 4) + "hi."), HasSubstr("cut off"));
  EXPECT_THAT(error_for("\x8e" + little_endian(~0ULL, 8) + "hi."), HasSubstr("cut off"));
  EXPECT_THAT(error_for("\x8b" + little_endian(0xFFFFFFFF, 4) + "."), HasSubstr("64 bits"));
  EXPECT_THAT(error_for("\x80\x04\x95" + little_endian(~0ULL, 8) + "N."), HasSubstr("frame"));
}

TEST(Pickle, RejectsAStackThatDoesNotFit) {
  EXPECT_THAT(error_for("."), HasSubstr("stack is empty"));
  EXPECT_THAT(error_for("K\x01(\x85."), HasSubstr("stack is empty"));  // not below a mark
  EXPECT_THAT(error_for("t."), HasSubstr("no mark"));
  EXPECT_THAT(error_for("NNa."), HasSubstr("appends to"));
  EXPECT_THAT(error_for("](NNu."), HasSubstr("inserts into"));
  EXPECT_THAT(error_for("(Nd."), HasSubstr("key without a value"));
  EXPECT_THAT(error_for("N)b."), HasSubstr("object with a state"));
}

TEST(Pickle, RejectsNumbersAndTextsThatAreNone) {
  EXPECT_THAT(error_for("Iabc\n."), HasSubstr("'abc' is no number"));
  EXPECT_THAT(error_for("L99999999999999999999L\n."), HasSubstr("is no number that fits"));
  EXPECT_THAT(error_for("S'a\n."), HasSubstr("quotes"));
  EXPECT_THAT(error_for("S'\\q'\n."), HasSubstr("unknown escape"));
  EXPECT_THAT(error_for("V\\u12\n."), HasSubstr("within an escape"));
  EXPECT_THAT(error_for("V\\UFFFFFFFF\n."), HasSubstr("beyond Unicode"));
  EXPECT_THAT(error_for("c_codecs\nencode\n(V\\u20ac\nVlatin1\ntR."), HasSubstr("beyond 255"));
  EXPECT_THAT(error_for("c_codecs\nencode\n(Va\nVrot13\ntR."), HasSubstr("other than as latin1"));
}

// numpy.core.numeric._frombuffer(b'abcdef', dtype, shape, 'C'); shape and type are parameters.
std::string array(const std::string& shape, const std::string& type) {
  return "cnumpy.core.numeric\n_frombuffer\n(C\x06"
         "abcdefcnumpy\ndtype\n(V" +
         type + "\nI00\nI01\ntR(" + shape + "tVC\ntR.";
}

TEST(Pickle, ReadsAnArrayWhoseShapeAgrees) {
  const Pickle pickle = parse(array("K\x02K\x03", "u1"));
  EXPECT_EQ(pickle.root().kind, Kind::array);
  EXPECT_EQ(pickle.root().shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(pickle.root().text(), "abcdef");
  EXPECT_EQ(parse(array("K\x03", "u2")).root().shape, (std::vector<std::int64_t>{3}));
}

TEST(Pickle, RejectsArraysWhoseShapeDoesNotAgree) {
  EXPECT_THAT(error_for(array("K\x02K\x04", "u1")), HasSubstr("needs 8 bytes, but it has 6"));
  EXPECT_THAT(error_for(array("I-1\nI-6\n", "u1")), HasSubstr("negative dimension"));
  EXPECT_THAT(error_for(array("I4294967296\nI4294967296\n", "u1")),
              HasSubstr("larger than memory"));
  EXPECT_THAT(error_for(array("N", "u1")), HasSubstr("dimension"));
  EXPECT_THAT(error_for(array("K\x06", "O")), HasSubstr("'O', which is not a plain number"));
  EXPECT_THAT(error_for(array("K\x06", "U1")), HasSubstr("'U1'"));
}

TEST(Pickle, BoundsTheMemoryThatAFileCanTake) {
  EXPECT_THAT(error_for(std::string(250'001, 'N') + "."), HasSubstr("250000 values"));
  EXPECT_THAT(error_for("N" + std::string(250'001, '\x94') + "."), HasSubstr("250000 values"));
  std::string again = "V" + std::string(1000, 'a') + "\n\x94";
  for (int i = 0; i < 1000; ++i) {
    again += "c_codecs\nencode\nh" + std::string(1, '\0') + "Vlatin1\n\x86R0";
  }
  EXPECT_THAT(error_for(again + "N."), HasSubstr("larger than its file"));
}

TEST(Pickle, TakesDeepNestingAndCyclesWithoutRecursion) {
  EXPECT_EQ(parse(std::string(100'000, ']') + std::string(99'999, 'a') + ".").root().kind,
            Kind::list);
  EXPECT_EQ(parse("]q\x01h\x01"
                  "a.")
                .root()
                .items.size(),
            1U);  // a list in itself
}

}  // namespace
}  // namespace cnn::data
