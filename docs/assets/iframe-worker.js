// Browsers start no workers for pages that are read from disk. There, the worker of the search runs in a hidden frame.
// (The theme looks for the name `IFrameWorker`.)
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const page = frame.contentDocument;
      page.open();
      page.write("<body></body>");
      page.close();
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = new Promise((resolve, reject) => {
        const script = page.createElement("script");
        Object.assign(script, { src: url, onload: resolve, onerror: reject });
        page.body.append(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
