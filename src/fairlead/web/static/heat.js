// A map of many nodes: a square each, the fuller the darker; zoomed by wheel, drawn anew where something changed.
"use strict";
(() => {
  const root = document.documentElement;
  const ID = 0, SHARE = 1, OPEN = 2, RUNNING = 3, FREE = 4;
  let nodes = [];
  let place = null;
  let zoom = 1, left = 0, top = 0;

  function layout() {
    const { clientWidth: width, clientHeight: height } = place;
    const count = Math.max(1, nodes.length);
    const columns = Math.max(1, Math.ceil(Math.sqrt((count * width) / height)));
    return { columns, size: Math.min(width / columns, height / Math.ceil(count / columns)) * zoom };
  }
  function turn(factor, px, py) {
    const before = zoom;
    zoom = Math.min(40, Math.max(1, zoom * factor));
    const grown = zoom / before;
    const { clientWidth: width, clientHeight: height } = place;
    left = Math.min(0, Math.max(width * (1 - zoom), px * width - (px * width - left) * grown));
    top = Math.min(0, Math.max(height * (1 - zoom), py * height - (py * height - top) * grown));
    draw();
  }
  function at(event) {
    const box = place.getBoundingClientRect();
    const { columns, size } = layout();
    const column = Math.floor((event.clientX - box.x - left) / size);
    const row = Math.floor((event.clientY - box.y - top) / size);
    return column >= 0 && column < columns ? nodes[row * columns + column] : undefined;
  }
  function hover(event) {
    if (event.buttons & 1 && zoom > 1) {
      left += event.movementX;
      top += event.movementY;
      turn(1, 0, 0);
    }
    const found = at(event);
    const used = found && `${found[ID]}: ${Math.round(found[SHARE] * 100)} % used, ${found[RUNNING]} running, free ${found[FREE]}`;
    document.getElementById("heat-tip").textContent = found ? used + (found[OPEN] ? "" : ", drained") : "";
  }
  function draw() {
    if (!place || !place.clientWidth) return;
    const scale = devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = place;
    place.width = width * scale;
    place.height = height * scale;
    const pen = place.getContext("2d");
    const [empty, full, ink] = ["--empty", "--q0", "--ink"].map((name) => {
      place.style.color = `var(${name})`; // As it comes out here, in the light or in the dark.
      return getComputedStyle(place).color;
    });
    const { columns, size } = layout();
    const side = size - (size > 6 ? 1 : size > 3 ? 0.5 : 0);
    pen.scale(scale, scale);
    nodes.forEach((node, number) => {
      const x = left + (number % columns) * size;
      const y = top + Math.floor(number / columns) * size;
      if (x > width || y > height || x + size < 0 || y + size < 0) return;
      pen.fillStyle = empty;
      pen.fillRect(x, y, side, side);
      if (node[SHARE]) {
        pen.globalAlpha = 0.15 + 0.85 * node[SHARE];
        pen.fillStyle = full;
        pen.fillRect(x, y, side, side);
        pen.globalAlpha = 1;
      }
      pen.strokeStyle = pen.fillStyle = ink;
      if (!node[OPEN]) {
        pen.beginPath();
        pen.moveTo(x + 1, y + 1);
        pen.lineTo(x + side - 1, y + side - 1);
        pen.stroke();
      }
      if (size > 70) {
        pen.font = "12px Roboto, sans-serif";
        pen.fillText(node[ID], x + 5, y + 16, size - 10);
        pen.fillText(`${Math.round(node[SHARE] * 100)} %`, x + 5, y + 32, size - 10);
      }
    });
  }
  function take(found) {
    place = found;
    new ResizeObserver(draw).observe(place);
    new MutationObserver(draw).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    place.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const box = place.getBoundingClientRect();
        turn(Math.exp(-event.deltaY / 300), (event.clientX - box.x) / box.width, (event.clientY - box.y) / box.height);
      },
      { passive: false },
    );
    place.addEventListener("pointermove", hover);
    place.addEventListener("click", (event) => {
      const node = at(event);
      if (node) location.href = `/now?node=${encodeURIComponent(node[ID])}`;
    });
    place.addEventListener("keydown", (event) => {
      if (event.key === "+" || event.key === "-") turn(event.key === "+" ? 1.5 : 1 / 1.5, 0.5, 0.5);
    });
  }
  Object.assign(window.fairlead, {
    heat(all) {
      nodes = all;
      const found = document.getElementById("heat");
      if (found && found !== place) take(found);
      draw();
    },
    heatChanged(changed) {
      for (const [number, node] of Object.entries(changed)) nodes[number] = node;
      draw();
    },
  });
})();
