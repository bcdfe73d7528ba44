// Channel of a page: a WebSocket that is opened again when it breaks. A channel has `send(object)`, and calls
// `onmessage(header, bytes)` and `onstate("open" | "lost")`, which mount() sets.

const PING = 2000; // ms
const SILENCE = 7000; // ms without any word after which a connection counts as lost
const RETRIES = [300, 600, 1200, 2500]; // ms

export function socketChannel(address = new URL(`ws${location.search}`, location.href)) {
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const channel = { onmessage() {}, onstate() {}, roundtrip: null };
  let [socket, tries, heard, ended, pings] = [null, 0, 0, false, 0];
  const times = new Map();

  function open() {
    socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      [tries, heard] = [0, performance.now()];
      channel.onstate("open");
    };
    socket.onmessage = ({ data }) => {
      heard = performance.now();
      const [header, bytes] = typeof data === "string" ? [JSON.parse(data), null] : unpacked(data);
      if (header.type === "pong") return void pong(header.id);
      channel.onmessage(header, bytes);
    };
    socket.onclose = () => {
      if (ended) return;
      channel.onstate("lost");
      setTimeout(open, RETRIES[Math.min(tries++, RETRIES.length - 1)]);
    };
  }

  function pong(id) {
    channel.roundtrip = performance.now() - (times.get(id) ?? NaN);
    times.clear();
  }

  const timer = setInterval(() => {
    if (socket.readyState !== WebSocket.OPEN) return;
    if (performance.now() - heard > SILENCE) return socket.close();
    times.set(++pings, performance.now());
    socket.send(JSON.stringify({ type: "ping", id: pings }));
  }, PING);

  channel.send = (message) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));
  channel.close = () => {
    ended = true;
    clearInterval(timer);
    socket.close();
  };
  open();
  return channel;
}

// A message with bytes: the length of its header, four bytes, little-endian; the header; the bytes.
function unpacked(data) {
  const size = new DataView(data).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, size)));
  return [header, new Uint8Array(data, 4 + size)];
}
