// Pages opened from a disk may not start workers, and the search is one: run it in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.inside.document.createElement("script");
      script.src = url;
      script.onload = () => { this.waiting.splice(0).forEach((data) => this.pass(data)); this.waiting = null; };
      this.inside.document.body.append(script);
    }
    pass(data) { this.inside.dispatchEvent(new MessageEvent("message", { data })); }
    postMessage(data) { this.waiting ? this.waiting.push(data) : this.pass(data); }
    terminate() { this.inside.frameElement.remove(); }
  };
}
