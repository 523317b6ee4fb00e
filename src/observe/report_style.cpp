#include "observe/palette.h"
#include "observe/report_page.h"

namespace megalith::observe {

namespace {
constexpr std::string_view kRules = R"(*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1180px;margin:0 auto;padding:28px 20px 56px}
header{display:flex;flex-wrap:wrap;align-items:center;gap:4px 12px}
h1{font-size:1.6rem;line-height:1.25;margin:0;overflow-wrap:anywhere}
.state{font-size:.8rem;font-weight:600;border-radius:99px;padding:2px 10px;border:1px solid currentColor;color:var(--muted)}
.state.good{color:var(--use-productive)}
.state.bad{color:var(--alarm)}
.when{color:var(--muted);margin:4px 0 20px;font-size:.9rem;overflow-wrap:anywhere}
h2{font-size:1rem;margin:0;line-height:1.3}
h2 small{color:var(--muted);font-weight:400;font-size:.85rem}
h3{font-size:.78rem;letter-spacing:.07em;text-transform:uppercase;color:var(--muted);margin:28px 0 10px}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(196px,1fr));gap:12px;margin:0}
.fact,.card{background:var(--card);border:1px solid var(--grid);border-radius:12px}
.fact{padding:12px 14px;min-width:0}
.fact dt{color:var(--muted);font-size:.8rem}
.fact dd{margin:1px 0 0;font-size:1.35rem;font-weight:650;line-height:1.3;font-variant-numeric:tabular-nums}
.fact p{margin:2px 0 0;color:var(--muted);font-size:.78rem;line-height:1.35}
.charts{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:14px}
.card{margin:0;padding:14px 16px;min-width:0}
.charts .wide,.charts .bars{grid-column:1/-1}
@media (max-width:760px){.charts{grid-template-columns:minmax(0,1fr)}main{padding:18px 12px 40px}.card{padding:12px 10px}
.facts{grid-template-columns:repeat(2,minmax(0,1fr));gap:8px}.fact dd{font-size:1.15rem}h1{font-size:1.35rem}}
figcaption{display:flex;justify-content:space-between;align-items:baseline;gap:8px}
.tools{display:none;gap:4px;flex:none}
.scripted .tools{display:flex}
button{font:inherit;font-size:.72rem;line-height:1;color:var(--muted);background:none;border:1px solid var(--grid);border-radius:6px;
padding:4px 7px;cursor:pointer}
button:hover,button[aria-pressed=true]{color:var(--text);border-color:var(--muted)}
.legend{display:flex;flex-wrap:wrap;gap:2px 14px;color:var(--muted);font-size:.78rem;margin-top:4px}
.legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:5px}
.sheet{position:relative}
.sheet.logarithmic,.log .sheet.linear{display:none}
.log .sheet.logarithmic{display:block}
.area{display:block;overflow:visible;font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
font-variant-numeric:tabular-nums}
.area text{paint-order:stroke;stroke:var(--card);stroke-width:3px;stroke-linejoin:round}
.plot .sheet{touch-action:pan-y;cursor:crosshair}
.cursor{position:absolute;width:1px;background:var(--muted);pointer-events:none;opacity:.7}
.tip{position:absolute;pointer-events:none;background:var(--card);border:1px solid var(--grid);border-radius:8px;padding:6px 9px;
font-size:.76rem;line-height:1.45;box-shadow:0 4px 14px #0003;white-space:nowrap;z-index:1;font-variant-numeric:tabular-nums}
.tip b{display:block;font-weight:600}
.tip i{display:inline-block;width:8px;height:8px;border-radius:2px;margin-right:5px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.88rem;font-variant-numeric:tabular-nums;margin-top:6px}
th,td{text-align:right;padding:5px 8px;border-bottom:1px solid var(--grid);vertical-align:top}
tr:last-child td{border-bottom:0}
th:first-child,td:first-child{text-align:left}
td.words{text-align:left;overflow-wrap:anywhere;min-width:9em}
th{color:var(--muted);font-weight:500}
th i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:5px}
td small{color:var(--muted)}
.stack>*{margin-top:14px}
summary{cursor:pointer;font-weight:600}
pre{overflow-x:auto;font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace;margin:12px 0 0}
.warn{color:var(--alarm);font-size:.85rem;margin:10px 0 0}
footer{color:var(--muted);font-size:.8rem;margin-top:28px}
@media print{body{background:#fff}.tools{display:none}.card,.fact{break-inside:avoid}}
)";
}

std::string report_style() {
  std::string css = ":root{color-scheme:light dark;" + css_variables(false) + "}\n";
  css += "@media (prefers-color-scheme:dark){:root{" + css_variables(true) + "}}\n";
  return css + std::string(kRules);
}

}  // namespace megalith::observe
