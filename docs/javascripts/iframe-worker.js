// Search from the disk: browsers start no worker for a page at file://, so the search runs in a hidden frame instead.
// The theme's own stand-in comes from another server; these pages ask no other server for anything.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.addEventListener("message", (event) => this.onmessage && this.onmessage(event));
      const frame = document.createElement("iframe");
      frame.style.display = "none";
      frame.srcdoc = "<!doctype html>";
      this.ready = new Promise((resolve) => {
        frame.onload = () => {
          frame.onload = null;
          const inner = frame.contentWindow;
          inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = frame.contentDocument.createElement("script");
          script.src = url;
          script.onload = () => resolve(inner);
          frame.contentDocument.body.append(script);
        };
      });
      this.frame = frame;
      document.documentElement.append(frame);
    }
    postMessage(data) {
      this.ready.then((inner) => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
