// Widget of a notebook: the viewer in an output cell, its channel the comm of its model. The kernel knows each place
// that shows the model by a name, so that what is for one is not taken by another.

export default {
  render({ model, el }) {
    const view = Math.random().toString(36).slice(2);
    const send = (message) => model.send({ view, message });
    const channel = { onmessage() {}, onstate() {}, send, rate: 4e5 }; // Jupyter drops what is over 1 MB a second
    const take = ({ view: to, header }, buffers) => {
      if (to !== view) return;
      const [data] = buffers ?? [];
      const bytes = data ? new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength) : null;
      channel.onmessage(header, bytes);
      if (header.type === "frame") send({ type: "got" });
    };
    model.on("msg:custom", take);
    const viewer = mount(el, channel, { page: false });
    channel.onstate("open");
    send({ type: "open" });
    return () => {
      send({ type: "close" });
      model.off("msg:custom", take);
      viewer?.end();
    };
  },
};
