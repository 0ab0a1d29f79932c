// What pages do in the browser: show what they are sent, say moments by the browser's clock, pass on what people do.
// It asks nobody for anything: NiceGUI's connection is the only one.
"use strict";
(() => {
  const TAIL = 256 * 1024;
  const root = document.documentElement;

  // -- light and dark ------------------------------------------------------------------------------------------------
  const theme = localStorage.getItem("fairlead-theme");
  if (theme) root.dataset.theme = theme;
  root.lang = "en";
  const isDark = () =>
    (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  function turnTheme() {
    root.dataset.theme = isDark() ? "light" : "dark";
    localStorage.setItem("fairlead-theme", root.dataset.theme);
  }

  // -- showing: only what differs is touched, so focus, selection and open parts stay ---------------------------------
  function keyOf(node) {
    return node.nodeType === 1 ? node.id || node.dataset.k || "" : "";
  }
  function sameKind(a, b) {
    return a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
  }
  function morph(now, then) {
    if (now.nodeType !== 1) {
      if (now.nodeValue !== then.nodeValue) now.nodeValue = then.nodeValue;
      return;
    }
    if (now.hasAttribute("data-keep") && now.outerHTML.length && (now.open || now.contains(document.activeElement))) return;
    for (const { name } of [...now.attributes]) {
      if (!then.hasAttribute(name) && !(name === "open" && now.nodeName === "DETAILS")) now.removeAttribute(name);
    }
    for (const { name, value } of [...then.attributes]) {
      if (name === "open" && now.nodeName === "DETAILS") continue;
      if (now.getAttribute(name) !== value) now.setAttribute(name, value);
    }
    if (now.nodeName === "TIME" && now.dataset.at) return; // Its text is said below.
    children(now, then);
  }
  function children(now, then) {
    const keyed = new Map();
    for (const node of now.childNodes) if (keyOf(node)) keyed.set(keyOf(node), node);
    let at = now.firstChild;
    for (const wanted of [...then.childNodes]) {
      const key = keyOf(wanted);
      let found = key ? keyed.get(key) : at;
      if (!key && at && keyOf(at)) found = null;
      if (found && sameKind(found, wanted)) {
        if (found !== at) now.insertBefore(found, at);
        else at = at.nextSibling;
        morph(found, wanted);
      } else {
        now.insertBefore(wanted, at);
      }
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  // -- moments -------------------------------------------------------------------------------------------------------
  function span(ms) {
    const s = Math.max(0, Math.round(ms / 1000));
    const parts = [
      [86400, "d"],
      [3600, "h"],
      [60, "m"],
      [1, "s"],
    ];
    for (let i = 0; i < parts.length; i++) {
      const [size, sign] = parts[i];
      if (s >= size || i === parts.length - 1) {
        const whole = Math.floor(s / size);
        const rest = i + 1 < parts.length ? Math.floor((s % size) / parts[i + 1][0]) : 0;
        return `${whole}${sign}` + (rest && whole < 10 ? ` ${rest}${parts[i + 1][1]}` : "");
      }
    }
    return "";
  }
  let then = null; // What is shown is of this moment, and not of now.
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const date = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  function sayTime(node) {
    const at = Number(node.dataset.at);
    const now = then ?? Date.now();
    let said;
    switch (node.dataset.how) {
      case "clock":
        said = now - at < 64800000 ? clock.format(at) : date.format(at);
        break;
      case "date":
        said = date.format(at);
        break;
      case "since":
        said = span(now - at);
        break;
      case "in":
        said = at - now >= 500 ? `in ${span(at - now)}` : "now";
        break;
      case "soon":
        said = at - now >= 500 ? `in ${span(at - now)}` : "any moment";
        break;
      default:
        said = `${span(now - at)} ago`;
    }
    if (node.textContent !== said) node.textContent = said;
  }
  function sayTimes(within) {
    for (const node of within.querySelectorAll("time[data-at]")) sayTime(node);
    for (const node of within.querySelectorAll(".expected[data-latest]"))
      node.classList.toggle("late", Number(node.dataset.latest) < (then ?? Date.now()));
  }

  // -- what people do --------------------------------------------------------------------------------------------------
  let dialog = null;
  function asked(question, danger) {
    return new Promise((resolve) => {
      if (!dialog) {
        dialog = document.createElement("dialog");
        dialog.innerHTML =
          '<form method="dialog"><p></p><div class="acts"><button value="no">Leave it</button>' +
          '<button value="yes" class="main">Do it</button></div></form>';
        document.body.append(dialog);
      }
      dialog.querySelector("p").textContent = question;
      dialog.querySelector(".main").className = danger ? "main danger" : "main";
      dialog.returnValue = "no";
      dialog.onclose = () => resolve(dialog.returnValue === "yes");
      dialog.showModal();
    });
  }
  const busy = new Map();
  let tokens = 0;
  async function act(node, given) {
    if (node.getAttribute("aria-busy") === "true") {
      if (node.type === "range") node.again = true;
      return;
    }
    if (node.dataset.confirm && !(await asked(node.dataset.confirm, node.classList.contains("danger")))) return;
    const token = String(++tokens);
    busy.set(token, node);
    node.setAttribute("aria-busy", "true");
    setTimeout(() => done(token), 60000);
    emitEvent("act", { ...node.dataset, ...given, token });
  }
  function done(token, failed) {
    const node = busy.get(token);
    if (!node) return;
    busy.delete(token);
    node.removeAttribute("aria-busy");
    if (node.again) {
      node.again = false;
      act(node, { value: node.value });
    }
    const field = node.closest("details.field");
    if (field && !failed) field.open = false;
  }
  document.addEventListener("click", (event) => {
    const node = event.target.closest("button");
    if (!node) return;
    if (node.dataset.themeButton !== undefined) turnTheme();
    else if (node.dataset.copy) {
      navigator.clipboard.writeText(node.dataset.copy).then(
        () => say("Copied."),
        () => say(node.dataset.copy),
      );
    } else if (node.dataset.line) {
      toLine(document.getElementById(node.dataset.field), Number(node.dataset.line));
    } else if (node.dataset.act && node.type !== "submit") act(node, {});
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.dataset.act) return;
    event.preventDefault();
    const given = Object.fromEntries(new FormData(form));
    if (event.submitter && event.submitter.name) given[event.submitter.name] = event.submitter.value;
    act(form, given);
  });
  document.addEventListener("input", (event) => {
    const shown = event.target.type === "range" && event.target.parentElement.querySelector("output");
    if (shown) shown.textContent = said(event.target.dataset.resource, Number(event.target.value));
  });
  document.addEventListener("change", (event) => {
    const field = event.target;
    if ((field.type === "range" || field.nodeName === "SELECT") && field.dataset.act) act(field, { value: field.value });
    if (field.form && field.form.dataset.submitOnChange !== undefined) field.form.requestSubmit();
  });
  function said(resource, value) {
    if (resource === "moment") return date.format(value);
    if (resource !== "memory" && resource !== "ephemeral-storage") return String(value);
    for (const [sign, size] of [["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 1024]]) {
      if (value >= size) return `${Math.floor((value / size) * 10) / 10}${sign}`;
    }
    return String(value);
  }
  function toLine(field, line) {
    const lines = field.value.split("\n");
    const begin = lines.slice(0, line - 1).reduce((all, each) => all + each.length + 1, 0);
    field.focus();
    field.setSelectionRange(begin, begin + (lines[line - 1] || "").length);
    field.scrollTop = (line - 5) * (field.scrollHeight / lines.length);
  }
  function recall(form) {
    try {
      for (const [name, value] of JSON.parse(localStorage.getItem(`fairlead-${form.dataset.remember}`)) || []) {
        const field = form.elements.namedItem(name);
        if (field && field.type === "checkbox") field.checked = true;
        // A queue that was removed since is none of the choices: the form's own stays.
        else if (field && name !== "how" && !(field.options && ![...field.options].some((each) => each.value === value)))
          field.value = value;
      }
    } catch {
      // What was kept makes no sense any more: the form begins anew.
    }
  }
  let silence = 0;
  function say(text, failed) {
    const place = document.getElementById("say");
    place.textContent = text;
    place.className = failed ? "failed" : "shown";
    clearTimeout(silence);
    silence = setTimeout(() => {
      place.className = "";
      place.textContent = "";
    }, failed ? 12000 : 5000);
  }

  // -- what pages are sent ------------------------------------------------------------------------------------------
  window.fairlead = {
    show(id, html) {
      const place = document.getElementById(`p-${id}`);
      if (!place) return;
      const template = document.createElement("template");
      template.innerHTML = html;
      children(place, template.content);
      sayTimes(place);
      place.dispatchEvent(new CustomEvent("shown", { bubbles: true }));
    },
    rows(id, changed) {
      const place = document.getElementById(`p-${id}`);
      if (!place) return;
      for (const html of changed) {
        const template = document.createElement("template");
        template.innerHTML = html;
        const row = template.content.firstChild;
        const shown = place.querySelector(`tr[data-k="${CSS.escape(row.dataset.k)}"]`);
        if (!shown) continue;
        morph(shown, row);
        sayTimes(shown);
      }
      place.dispatchEvent(new CustomEvent("shown", { bubbles: true }));
    },
    clock(ms) {
      then = ms;
      const slider = document.querySelector(".course input[type=range]");
      if (slider && document.activeElement !== slider) slider.value = ms;
      sayTimes(document);
    },
    lost(text) {
      const place = document.getElementById("p-lost");
      if (place && place.textContent !== text) place.textContent = text;
    },
    output(stream, text, anew, nothing) {
      const place = document.getElementById(`out-${stream}`);
      if (!place) return;
      if (anew || !place.dataset.begun) place.textContent = "";
      if (!text) {
        if (anew) delete place.dataset.begun;
        if (nothing && !place.dataset.begun) place.textContent = nothing;
        return;
      }
      const atEnd = place.scrollTop + place.clientHeight >= place.scrollHeight - 8;
      if (!place.dataset.begun) place.textContent = "";
      place.dataset.begun = "yes";
      place.append(text);
      if (place.textContent.length > TAIL) place.textContent = place.textContent.slice(-TAIL / 2);
      if (atEnd) place.scrollTop = place.scrollHeight;
      if (stream === "stderr") document.getElementById("err").open = true;
    },
    remember(name) {
      const form = document.querySelector(`form[data-remember="${name}"]`);
      // What variables hold may be a secret, which no browser keeps.
      const kept = form && [...new FormData(form)].filter(([field]) => field !== "env");
      if (form) localStorage.setItem(`fairlead-${name}`, JSON.stringify(kept));
    },
    fill(id, text) {
      const field = document.getElementById(id);
      field.value = text;
      field.scrollTop = 0;
      field.focus();
    },
    reveal(id) {
      document.getElementById(id).scrollIntoView({ behavior: "smooth", block: "nearest" });
    },
    say,
    done,
    go(path) {
      location.href = path;
    },
  };
  setInterval(() => sayTimes(document), 1000);
  // The page is made once the program text is there.
  const waiting = new MutationObserver(() => {
    if (!document.getElementById("content")) return;
    waiting.disconnect();
    sayTimes(document);
    for (const form of document.querySelectorAll("form[data-remember]")) recall(form);
  });
  waiting.observe(root, { childList: true, subtree: true });
})();
