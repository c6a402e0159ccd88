"use strict";
// Accuracy per level over training, drawn as SVG. Only numbers and level indices enter the markup, never names.

const levelColour = (level) => `var(--level-${Math.min(level, 4)})`;

/** Steps on a log axis that has a place for step 0; `unit` is the smallest step that is not 0. */
function stepAxis(steps, left, right) {
  const unit = Math.min(...steps.filter((s) => s > 0), Infinity);
  const squash = (s) => (Number.isFinite(unit) ? Math.log1p(s / unit) : 0);
  const low = squash(Math.min(...steps)), high = squash(Math.max(...steps));
  const place = (s) => (high > low ? left + ((squash(s) - low) / (high - low)) * (right - left) : (left + right) / 2);
  return { place, ticks: stepTicks(steps, place) };
}

/** 0, then 1, 2 and 5 times powers of ten, as many as keep a distance. */
function stepTicks(steps, place) {
  const top = Math.max(...steps), low = Math.min(...steps), found = [];
  const candidates = low === 0 ? [0] : [];
  for (let power = 1; power <= top; power *= 10) candidates.push(power);
  for (let power = 1; power <= top; power *= 10) candidates.push(2 * power, 5 * power);
  for (const s of candidates)
    if (s >= low && s <= top && found.every((t) => Math.abs(place(t) - place(s)) > 52)) found.push(s);
  return found;
}

const shortStep = (s) => (s >= 1e6 ? `${s / 1e6}M` : s >= 1000 ? `${s / 1000}k` : String(s));

/** Points [x, y] of a curve; gaps where a step was not measured. */
function linePath(steps, values, x, y) {
  let path = "", pen = false;
  steps.forEach((s, i) => {
    const v = values[i];
    if (v !== null && v !== undefined) path += `${pen ? "L" : "M"}${x(s).toFixed(1)} ${y(v).toFixed(1)}`;
    pen = v !== null && v !== undefined;
  });
  return path;
}

function bandPath(steps, scores, x, y) {
  const known = steps.map((s, i) => [s, scores[i]]).filter(([, score]) => score);
  if (known.length < 2) return "";
  const point = (s, v) => `${x(s).toFixed(1)} ${y(v).toFixed(1)}`;
  const there = known.map(([s, v]) => point(s, v[2])), back = known.reverse().map(([s, v]) => point(s, v[1]));
  return `M${there.join("L")}L${back.join("L")}Z`;
}

/** A thumbnail of one variant: the mean curve of each level, no axes. */
function sparkline(variant, probe, levels) {
  const curves = variant.curves[probe];
  if (!curves || !variant.steps.length) return "";
  const axis = stepAxis(variant.steps, 2, 158), y = (v) => 46 - 42 * v;
  const lines = levels.map((l) => {
    const values = (curves[l] || []).map((score) => score && score[0]);
    return `<path d="${linePath(variant.steps, values, axis.place, y)}" fill="none" stroke="${levelColour(l)}" stroke-width="2.2" vector-effect="non-scaling-stroke"/>`;
  });
  return `<svg viewBox="0 0 160 48" preserveAspectRatio="none" aria-hidden="true"><path d="M0 46H160" stroke="currentColor" stroke-opacity=".25" vector-effect="non-scaling-stroke"/>${lines.join("")}</svg>`;
}

/** The chart: paper dashed behind, then bands, seeds thin, mean bold, cursor with a dot per level on the chosen run. */
function drawCurves(host, { variant, runs, run, probe, levels, step, paper, other }) {
  const width = Math.max(host.clientWidth, 260), height = width < 520 ? 240 : 320;
  const left = 52, right = width - 12, top = 10, bottom = height - 40;
  const steps = runs.flatMap((r) => r.steps).concat(paper ? paper.steps : [], other ? other.steps : []);
  const { place, ticks } = stepAxis(steps, left + 4, right);
  const y = (v) => bottom - v * (bottom - top);
  const parts = [0, 0.25, 0.5, 0.75, 1].map((v) =>
    `<path d="M${left} ${y(v)}H${right}" stroke="currentColor" stroke-opacity="${v ? 0.1 : 0.45}"/><text x="${left - 8}" y="${y(v) + 4}" text-anchor="end">${100 * v}${v === 1 ? "\u202f%" : ""}</text>`);
  for (const s of ticks)
    parts.push(`<path d="M${place(s)} ${bottom}v5" stroke="currentColor" stroke-opacity=".45"/><text x="${place(s)}" y="${bottom + 19}" text-anchor="middle">${shortStep(s)}</text>`);
  parts.push(`<text x="${(left + right) / 2}" y="${height - 3}" text-anchor="middle">updates (log)</text>`);
  const stroke = (d, level, rest) => `<path d="${d}" fill="none" stroke="${levelColour(level)}" stroke-linejoin="round" stroke-linecap="round" ${rest}/>`;
  if (paper) for (const l of levels) if (paper.levels[l]) parts.push(stroke(linePath(paper.steps, paper.levels[l], place, y), l, 'class="of-paper" stroke-width="1.5" stroke-dasharray="6 4" stroke-opacity=".8"'));
  const column = (scores) => (scores || []).map((score) => score && score[0]);
  for (const l of levels) {
    const curve = (variant.curves[probe] || {})[l];
    if (curve) parts.push(`<path d="${bandPath(variant.steps, curve, place, y)}" fill="${levelColour(l)}" fill-opacity=".16"/>`);
    if (runs.length > 1) for (const r of runs) parts.push(stroke(linePath(r.steps, column((r.curves[probe] || {})[l]), place, y), l, `class="of-seed" stroke-width="${r === run ? 1.5 : 1}" stroke-opacity="${r === run ? 0.9 : 0.5}"`));
    if (curve) parts.push(stroke(linePath(variant.steps, column(curve), place, y), l, 'class="of-mean" stroke-width="3"'));
  }
  if (other) for (const l of levels) parts.push(stroke(linePath(other.steps, column(other.curves[l]), place, y), l, 'class="of-other" stroke-width="2.5" stroke-dasharray="1 6"'));
  parts.push(`<path class="cursor" d="M${place(step)} ${top - 4}V${bottom}" stroke="currentColor" stroke-opacity=".6" stroke-dasharray="3 3"/>`);
  const index = run.steps.indexOf(step);
  for (const l of levels) {
    const score = ((run.curves[probe] || {})[l] || [])[index];
    if (score) parts.push(`<circle cx="${place(step)}" cy="${y(score[0])}" r="5.5" fill="${levelColour(l)}" stroke="var(--paper)" stroke-width="2"/>`);
  }
  host.innerHTML = `<svg viewBox="0 0 ${width} ${height}" height="${height}" font-size="12.5" fill="currentColor" aria-hidden="true">${parts.join("")}</svg>`;
  host.dataset.cursor = String(step);
  return place;
}
