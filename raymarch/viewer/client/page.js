import {mount} from "./client.js";
const socket = new WebSocket(`ws://${location.host}/ws${location.search}`);
socket.binaryType = "arraybuffer";
const channel = {
  send: (message) => { if (socket.readyState === 1) socket.send(JSON.stringify(message)); },
  onmessage: () => {},
  onclose: () => {},
};
socket.onmessage = ({data}) => {
  if (typeof data === "string") return channel.onmessage(JSON.parse(data), null);
  const length = new DataView(data).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  channel.onmessage(header, new Uint8Array(data, 4 + length));
};
socket.onclose = () => channel.onclose();
mount(document.getElementById("viewer"), channel);
