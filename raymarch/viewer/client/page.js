// The page: one viewer over all of it, its channel a WebSocket.
import { mount, socketChannel } from "./client.js";

mount(document.querySelector("main"), socketChannel(), { page: true });
