// Channel of a page: a WebSocket that is opened again when it breaks. A channel has `send(object)`, and calls
// `onmessage(header, bytes)` and `onstate("open" | "lost")`, which mount() sets.

const PING = 2000; // ms
const SILENCE = 7000; // ms without any word after which a connection counts as lost
const ASKED = 3; // tries in a row that failed, after which the server is asked why
const RETRIES = [300, 600, 1200, 2500]; // ms

export function socketChannel(address = new URL(`ws${location.search}`, location.href)) {
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const channel = { onmessage() {}, onstate() {}, roundtrip: null };
  let [socket, tries, heard, ended, pings, why] = [null, 0, 0, false, 0, ""];
  const times = new Map();

  function open() {
    socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      [tries, heard, why] = [0, performance.now(), ""];
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
      channel.onstate("lost", why);
      setTimeout(open, RETRIES[Math.min(tries++, RETRIES.length - 1)]);
      if (tries === ASKED) ask();
    };
  }

  // Asks the server in plain HTTP why it opens no WebSocket; it answers in words, or is gone.
  async function ask() {
    const place = new URL(address);
    place.protocol = location.protocol;
    try {
      const answer = await fetch(place, { cache: "no-store" });
      const words = (await answer.text()).trim().replace(/^raymarch: /, "");
      if (answer.status < 400 || socket.readyState === WebSocket.OPEN) return;
      const said = /^[\x20-\x7e]{1,600}$/.test(words) ? words : `what answers there (${answer.status}) is not raymarch`;
      why = `The viewer opens no connection: ${said}`;
      channel.onstate("lost", why);
    } catch {
      why = "";
    }
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
