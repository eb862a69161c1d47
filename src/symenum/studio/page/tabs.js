// A row of tabs with one panel, as screen readers and keyboards know it: arrow keys change the tab.

import { element, freshId, refill } from "./dom.js";

/**
 * Tabs are [{key, label, fill(panel)}]; `fill` is called each time its tab is opened and may give a function that is
 * called when it is left. Gives {node, refresh(), close(), open(key), current()}.
 */
export function makeTabs(tabs, label, first = null) {
  const panelId = freshId("panel");
  let leave = null;
  let current = tabs.find((tab) => tab.key === first) ?? tabs[0];
  const buttons = tabs.map((tab) =>
    element(
      "button",
      { type: "button", role: "tab", id: freshId("tab"), "aria-controls": panelId, onclick: () => open(tab.key) },
      tab.label,
    ),
  );
  const list = element("div", { role: "tablist", "aria-label": label, class: "tabs", onkeydown: onKey }, buttons);
  const panel = element("div", { role: "tabpanel", id: panelId, class: "panel", tabindex: "0" });

  function onKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = (tabs.indexOf(current) + step + tabs.length) % tabs.length;
    open(tabs[next].key);
    buttons[next].focus();
  }

  function open(key) {
    current = tabs.find((tab) => tab.key === key) ?? current;
    tabs.forEach((tab, i) => {
      buttons[i].setAttribute("aria-selected", String(tab === current));
      buttons[i].tabIndex = tab === current ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", buttons[tabs.indexOf(current)].id);
    refresh();
  }

  function close() {
    leave?.();
    leave = null;
  }

  function refresh() {
    close();
    refill(panel);
    leave = current.fill(panel) ?? null;
  }

  return { node: element("div", { class: "tabbed" }, list, panel), refresh, close, open, current: () => current.key };
}
