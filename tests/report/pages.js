/* Appended to pages of several graphs or ranks: contents, one of the graphs, all ranks. */
"use strict";
(function () {
  const wrong = window.tuckErrors.slice(), t = window.tuck;
  const expect = (what, is, should) => { if (is !== should) wrong.push(`${what}: ${is} instead of ${should}`); };
  const shown = id => getComputedStyle(document.getElementById(id)).display !== "none";
  const links = [...document.querySelectorAll("a")].map(a => a.getAttribute("href")).filter(Boolean);

  if (t.data.ranks) {
    const {step_ns: step, ranks} = window.tuckWanted;
    expect("ranks", t.data.runs.length, ranks.length);
    ranks.forEach((r, i) => {
      expect("compute of rank " + i, Math.round(t.data.runs[i].compute_ps / 1e6), Math.round(r.compute_ns / 1e3));
      expect("step of rank " + i, Math.round(t.data.runs[i].step_ps / 1e6), Math.round(step / 1e3));
    });
    expect("ops drawn", t.drawn(), t.data.runs.reduce((n, r) => n + r.ops.length, 0));
    expect("rows", t.rows(), t.data.runs.reduce((n, r) => n + r.ops.filter(o => o.kind === "collective").length, 0));
    expect("first column", document.querySelector("#rows th").textContent, "rank");
  } else if (location.hash === "") {
    expect("contents are shown", shown("contents"), true);
    expect("no timeline", shown("view"), false);
    expect("links", links.join(" "), t.all.graphs.map((g, i) => "#graph=" + i).join(" "));
  } else {
    expect("contents are shown", document.getElementById("contents").rows.length, 0);
    expect("timeline", shown("view"), true);
    expect("graph", t.data.runs[0].ops.length, t.all.graphs[1].runs[0].ops.length);
    expect("links", links.join(" "), "# #graph=0");
  }
  const out = document.createElement("pre");
  out.id = "result";
  out.textContent = wrong.length ? "WRONG " + wrong.join("; ") : "RIGHT";
  document.body.append(out);
})();
