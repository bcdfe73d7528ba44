// Colour maps, as colours at even places; those of matplotlib that are perceptually even, and a few that are usual.

const MAPS = {
  viridis:
    "44015448186a472d7b4240863b528b33638d2c728e26828e21918c1fa08828ae803fbc735ec96284d44baddc30d8e219" + "fde725",
  inferno:
    "0000040b0724210c4a3d096557106e71196e8a226aa32c61bc3754d24644e45a31f1731df98e09fcac11f9cb35f2ea69" + "fcffa4",
  magma: "000004140e363b0f70641a808c2981b73779de4968f7705cfe9f6dfecf92fcfdbf",
  plasma: "0d08873105974c02a16600a77e03a89511a1aa2395bc3587cc4778da5a6ae66c5cf0804ef89540fdac33fdc527f8df25" + "f0f921",
  cividis:
    "00224e002e6a1a386f32436d434e6c535a6d61656f6f70737d7c788c88789b9476aba072bcae6ccdbb63dec958f0d846" + "fee838",
  gray: "000000ffffff",
  bone: "0000001c1c2738384e545574707b908ca2aca9c8c8d5e4e4ffffff",
  coolwarm:
    "3b4cc04e68d86282ea779af78db0fea3c2feb9d0f9ccd9eddddcdcecd3c5f5c4acf7b093f4987aeb7d62dd5f4bca3b37" + "b40426",
  twilight:
    "e2d9e2c4ced495b5c77297c16276ba5e51ad592a8f45135c2f14364a1342741e4f983550b25652c27c63cca389d8c7be" + "e2d9e2",
  turbo: "30123b4040a2466be34294ff28bceb18ddc232f2986dfe62a4fc3ccdec34eecf3afdac34fb7e21eb500ed02f05a91601" + "7a0403",
};

// Colours of a map as stops { value, colour } over a range of values.
function mapStops(name, low, high) {
  const colours = MAPS[name].match(/.{6}/g).map((hex) => colourOf(`#${hex}`));
  return colours.map((colour, i) => ({ value: low + ((high - low) * i) / (colours.length - 1), colour }));
}
