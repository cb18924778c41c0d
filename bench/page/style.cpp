#include "bench/page/style.h"

#include <fmt/format.h>

#include "bench/page/chart.h"

namespace cnn::page {
namespace {

// The colours of both sides are distinguishable with red-green colour blindness (Okabe and Ito's
// blue and orange), and by lightness in print.
constexpr std::string_view sheet = R"(
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #5b626b; --paper: #ffffff; --panel: #f5f6f8;
  --rule: #d8dce1; --a: #0072b2; --b: #d55e00; --bad: #b3261e; --good: #1b7a43; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a4abb5; --paper: #14161a;
  --panel: #1d2025; --rule: #363b43; --a: #56b4e9; --b: #f0a04b; --bad: #ff8a80; --good: #7bd88f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; background: var(--paper); color: var(--ink);
  font: 16px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0.2rem 0 0.6rem; } h2 { font-size: 1.15rem; margin: 1.6rem 0 0.4rem; }
p { margin: 0.3rem 0; } small { color: var(--soft); font-weight: normal; }
main { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 30rem), 1fr)); }
main > p, main > .wide { grid-column: 1 / -1; }
figure { margin: 0; padding: 0.6rem; background: var(--panel); border-radius: 0.5rem; min-width: 0; }
figcaption { font-weight: 600; margin-bottom: 0.3rem; }
svg { display: block; width: 100%; height: auto; font: 11px system-ui, sans-serif; }
svg text { fill: var(--soft); }
svg .label { fill: var(--ink); paint-order: stroke; stroke: var(--panel); stroke-width: 3px; }
.grid { stroke: var(--rule); } .rule { stroke: var(--soft); stroke-dasharray: 4 3; }
.line { fill: none; stroke-width: 1.5; } .area { fill-opacity: 0.25; stroke-width: 1; }
.a { stroke: var(--a); fill: var(--a); } .b { stroke: var(--b); fill: var(--b); }
.line.a, .line.b { fill: none; } .bar { stroke: none; } .bar.odd { fill-opacity: 0.65; }
.bar.planned { fill: var(--soft); } .rule.a { stroke: var(--a); } .rule.b { stroke: var(--b); }
.dot { fill-opacity: 0.7; stroke: none; } .dot.disturbed { fill: var(--panel); fill-opacity: 1; }
.dot.a.disturbed { stroke: var(--a); } .dot.b.disturbed { stroke: var(--b); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.85rem; width: 100%; }
th, td { padding: 0.2rem 0.5rem; text-align: right; border-bottom: 1px solid var(--rule); vertical-align: top; }
td.name, th:first-child { text-align: left; overflow-wrap: anywhere; } th { color: var(--soft); }
.wide td:first-child { white-space: nowrap; }
tr.unlike td { color: var(--b); font-weight: 600; }
.regression { color: var(--bad); font-weight: 600; } .improvement { color: var(--good); font-weight: 600; }
.tiles { display: flex; flex-wrap: wrap; gap: 0.6rem; margin: 0.6rem 0; }
.tiles div { background: var(--panel); border-radius: 0.5rem; padding: 0.5rem 0.8rem; }
.tiles b { display: block; font-size: 1.2rem; }
.key::before { content: "\25CF\00A0"; } .key.a { color: var(--a); } .key.b { color: var(--b); }
.swatch { display: inline-block; width: 0.9em; height: 0.7em; margin: 0 0.25em 0 0.6em; }
.swatch.a { background: var(--a); } .swatch.b { background: var(--b); } .swatch.odd { opacity: 0.65; }
.swatch.planned { background: var(--soft); } figure p { font-size: 0.8rem; }
)";

}  // namespace

std::string document(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" "
      "href=\"data:,\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}</body>\n</"
      "html>\n",
      escaped(title), sheet, body);
}

}  // namespace cnn::page
