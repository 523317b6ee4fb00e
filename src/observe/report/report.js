'use strict';
document.documentElement.classList.add('scripted');
const make = (parent, tag, name, text) => {
  const element = parent.appendChild(document.createElement(tag));
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
};
const words = n => n === null ? 'not a number' : Math.abs(n) >= 1e5 ? Math.round(n).toLocaleString('en') : String(+n.toPrecision(5));
// The place of x in sorted xs: the nearest, or for columns the one that x lies in.
const placeOf = (xs, x, columnWidth) => {
  let low = 0, high = xs.length;
  while (low < high) { const middle = (low + high) >> 1; if (xs[middle] <= x) low = middle + 1; else high = middle; }
  if (columnWidth) return x < xs[low - 1] + columnWidth ? low - 1 : -1;
  if (low === xs.length || (low > 0 && x - xs[low - 1] < xs[low] - x)) return low - 1;
  return low;
};
const follow = (sheet, data) => {
  const area = sheet.querySelector('.area');
  const cursor = make(sheet, 'div', 'cursor'), tip = make(sheet, 'div', 'tip');
  const hide = () => { cursor.hidden = tip.hidden = true; };
  const show = event => {
    const box = area.getBoundingClientRect(), outer = sheet.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    if (share < 0 || share > 1) return hide();
    const x = data.x[0] + share * (data.x[1] - data.x[0]);
    cursor.style.cssText = `left:${event.clientX - outer.left}px;top:${box.top - outer.top}px;height:${box.height}px`;
    tip.replaceChildren();
    const heading = make(tip, 'b');
    let shown = null;
    for (const series of data.series) {
      const place = placeOf(series.x, x, data.columnWidth);
      if (place < 0 || (data.columnWidth && data.series.length > 1 && !series.y[place])) continue;
      const at = series.x[place];
      if (shown === null) shown = data.columnWidth ? x : at;
      // A series with fewer points may have none here.
      const elsewhere = !data.columnWidth && Math.abs(at - shown) > 0.003 * (data.x[1] - data.x[0]);
      const row = make(tip, 'div');
      make(row, 'i').style.background = `var(--${series.ink})`;
      row.append(`${series.label}: ${words(series.y[place])}${elsewhere ? ` at ${words(at)}` : ''}`);
    }
    if (shown === null) return hide();
    heading.textContent = `${data.xLabel} ${words(shown)}`;
    cursor.hidden = tip.hidden = false;
    const left = event.clientX - outer.left + 14;
    tip.style.left = `${left + tip.offsetWidth > outer.width ? Math.max(0, left - 28 - tip.offsetWidth) : left}px`;
    tip.style.top = `${Math.max(0, box.top - outer.top + 8)}px`;
  };
  hide();
  sheet.addEventListener('pointermove', show);
  sheet.addEventListener('pointerdown', show);
  sheet.addEventListener('pointerleave', hide);
};
// The picture with its title and its legend, in the colours that it has now, as a file.
const save = figure => {
  const sheet = [...figure.querySelectorAll('.sheet')].find(one => one.offsetParent);
  const area = sheet.querySelector('.area'), padding = getComputedStyle(sheet), root = getComputedStyle(document.documentElement);
  const width = sheet.clientWidth + 24, heading = figure.querySelector('.legend') ? 62 : 42;
  const height = heading + sheet.clientHeight + 12, ns = 'http:' + '//www.w3.org/2000/svg';
  const add = (parent, tag, attributes, text) => {
    const element = parent.appendChild(document.createElementNS(ns, tag));
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    if (text) element.textContent = text;
    return element;
  };
  const svg = document.createElementNS(ns, 'svg');
  const inks = new Set([...figure.innerHTML.matchAll(/var\(--([\w-]+)\)/g)].map(match => match[1]).concat('card', 'text', 'muted'));
  const colours = [...inks].map(ink => `--${ink}:${root.getPropertyValue('--' + ink)}`).join(';');
  for (const [name, value] of Object.entries({width, height, style: `${colours};font-family:sans-serif`})) svg.setAttribute(name, value);
  add(svg, 'rect', {width: '100%', height: '100%', fill: 'var(--card)'});
  add(svg, 'text', {x: 14, y: 26, 'font-size': 16, 'font-weight': 600, fill: 'var(--text)'}, figure.querySelector('h2').textContent);
  let x = 14;
  for (const entry of figure.querySelectorAll('.legend span')) {
    add(svg, 'rect', {x, y: 39, width: 10, height: 10, rx: 3, fill: entry.firstChild.style.background, opacity: entry.firstChild.style.opacity || 1});
    add(svg, 'text', {x: x + 15, y: 48, 'font-size': 12, fill: 'var(--muted)'}, entry.textContent);
    x += entry.offsetWidth + 14;
  }
  const copy = area.cloneNode(true);
  for (const [name, value] of Object.entries({x: 12 + parseFloat(padding.paddingLeft), y: heading + parseFloat(padding.paddingTop),
      width: area.clientWidth, height: area.clientHeight, overflow: 'visible'})) copy.setAttribute(name, value);
  svg.append(copy);
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement('canvas');
    canvas.width = 2 * width;
    canvas.height = 2 * height;
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    const link = document.createElement('a');
    link.download = `${figure.id}.png`;
    link.href = canvas.toDataURL('image/png');
    link.click();
  };
  image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(new XMLSerializer().serializeToString(svg));
};
for (const figure of document.querySelectorAll('figure')) {
  figure.querySelector('.save').addEventListener('click', () => save(figure));
  const log = figure.querySelector('.log');
  if (log) log.addEventListener('click', () => log.setAttribute('aria-pressed', figure.classList.toggle('log')));
  if (!figure.dataset.plot) continue;
  const data = JSON.parse(figure.dataset.plot);
  for (const sheet of figure.querySelectorAll('.sheet')) follow(sheet, data);
}
