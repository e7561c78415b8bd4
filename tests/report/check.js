/* Appended to a page of tuck optimize --html: uses it as a reader would, and writes what is wrong into the page. */
"use strict";
(function () {
  const wrong = window.tuckErrors.slice();
  const expect = (what, is, should) => { if (is !== should) wrong.push(`${what}: ${is} instead of ${should}`); };
  const near = (what, is, should) => { if (Math.abs(is - should) > 1) wrong.push(`${what}: ${is} instead of ${should}`); };
  const t = window.tuck, runs = t.data.runs, want = window.tuckWanted;

  /* every op is drawn while the whole step is in view */
  const ops = runs.reduce((n, r) => n + r.ops.length, 0);
  expect("ops drawn", t.drawn(), ops);
  expect("runs", runs.length, want.length);

  /* the numbers are those of the JSON */
  want.forEach((w, i) => {
    const r = runs[i];
    near("step", r.step_ps / 1000, w.step_ns);
    near("compute", r.compute_ps / 1000, w.compute_ns);
    near("communication", r.comm_ps / 1000, w.comm_ns);
    near("exposed", r.exposed_ps / 1000, w.exposed_ns);
    expect("peak", r.peak, w.peak_bytes);
    near("bound", r.bound_ps / 1000, w.bound_ns);
    r.memory.forEach(([time], k) => {
      if (k > 0 && time < r.memory[k - 1][0]) wrong.push("the memory curve goes back in time at " + time);
    });
    const shown = [...document.querySelectorAll("#sum td")].filter(d => d.dataset.key === "step")[i].textContent;
    expect("step as shown", shown, (w.step_ns / 1e6).toFixed(3) + " ms");
    const coll = r.ops.filter(o => o.kind === "collective");
    expect("collectives", coll.length, w.collectives.length);
    coll.forEach((o, k) => {
      expect("collective", o.name, w.collectives[k].node);
      near("exposed of " + o.name, o.exposed / 1000, w.collectives[k].exposed_ns);
    });
  });

  /* zoom */
  const [a, b] = t.view();
  t.zoom(0.5, (a + b) / 2);
  const [c, d] = t.view();
  near("zoomed width", (d - c) / 1000, (b - a) / 2000);
  if (t.drawn() > ops) wrong.push("more ops than there are");
  document.getElementById("all").click();
  expect("whole step again", t.view()[1], b);

  /* filter and sort */
  const last = runs[runs.length - 1], all = last.ops.filter(o => o.kind === "collective");
  expect("rows", t.rows(), all.length);
  const box = document.getElementById("filter");
  box.value = all[0].name;
  box.dispatchEvent(new Event("input"));
  expect("filtered rows", t.rows(), all.filter(o => o.name.includes(all[0].name)).length);
  box.value = "";
  box.dispatchEvent(new Event("input"));
  const heads = [...document.querySelectorAll("#rows th")];
  heads.find(h => h.textContent.startsWith("MiB")).click();
  const first = document.querySelector("#rows tbody tr").dataset.name;
  expect("largest first", last.index.get(first).bytes, Math.max(...all.map(o => o.bytes)));

  /* a click shows what it waits for */
  t.pick(all[all.length - 1].name);
  if (all[all.length - 1].deps.length > 0 && t.chain().length === 0) wrong.push("no chain of dependences");
  const told = document.getElementById("picked");
  if (!told.textContent.includes(all[all.length - 1].name)) wrong.push("what was clicked is not told");
  if (t.chain().length > 0) {
    const next = told.querySelector("a").textContent;
    told.querySelector("a").click();
    expect("the chain leads on", told.querySelector("b").textContent, next);
  }

  /* what was issued leads to its wait, and back */
  for (const r of runs)
    for (const o of r.ops.filter(o => o.kind === "collective"))
      if (!o.wait || o.issued > o.start || o.wait.end < o.end) wrong.push(`${o.name} has no wait after it`);
  t.pick(all[0].name);
  const links = [...told.querySelectorAll("a")], wait = links[links.length - 1];
  expect("link to the wait", wait.textContent, all[0].wait.name);
  wait.click();
  expect("the wait is shown", told.querySelector("b").textContent, all[0].wait.name);
  expect("what it waits for", [...told.querySelectorAll("a")].some(a => a.textContent === all[0].name), true);

  /* search over all ops of all runs, by any of their nodes */
  const find = document.getElementById("find"), some = last.ops.find(o => o.kind === "gemm" || o.kind === "compute");
  const word = some.nodes[some.nodes.length - 1] || some.name;
  find.value = word.toUpperCase();
  find.dispatchEvent(new Event("input"));
  const has = o => [o.name, o.kernel, o.coll, o.group, o.source, o.parameter, ...o.nodes].some(s => (s || "").includes(word));
  expect("found " + word, t.found(), runs.reduce((n, r) => n + r.ops.filter(has).length, 0));
  find.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
  expect("Enter goes there", document.querySelector("#found a").textContent.startsWith(told.querySelector("b").textContent), true);
  find.value = "no such op";
  find.dispatchEvent(new Event("input"));
  expect("nothing found", document.getElementById("found").textContent, "0 ops");
  find.value = "";
  find.dispatchEvent(new Event("input"));

  /* before and after in one table, and what changed */
  if (runs.length > 1) {
    expect("column of before", heads.some(h => h.textContent.startsWith("exposed before us")), true);
    const cells = [...document.querySelectorAll("#sum tr")].map(r => [...r.cells].map(c => c.textContent));
    const step = cells.find(c => c[0] === "step");
    expect("change of the step", parseFloat(step[3]).toFixed(1),
      (100 * (want[1].step_ns / want[0].step_ns - 1)).toFixed(1));
  }

  /* both themes draw */
  document.getElementById("theme").click();
  expect("ops drawn in the other theme", t.drawn() > 0, true);

  const out = document.createElement("pre");
  out.id = "result";
  out.textContent = wrong.length ? "WRONG " + wrong.join("; ") : `RIGHT ${ops} ops`;
  document.body.append(out);
})();
