"""Results that must be right or refused: pictures, metrics, least squares, deposits, renderings."""

from __future__ import annotations

from hostile_cases.case import Area

area = Area("results")
refused, works, either = area.python_refused, area.python_works, area.python_either
PNG = ("a.png",)

CASES = [
    works("psnr of uint8 images is that of the images in 0..1", """
a = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
b = a + np.uint8(3)
assert abs(rm.psnr(a, b) - rm.psnr(a / 255, b / 255)) < 1e-9, rm.psnr(a, b)
"""),
    works("ssim of uint8 images is that of the images in 0..1", """
a = np.random.default_rng(0).integers(0, 200, (16, 16, 3)).astype(np.uint8)
b = a + np.uint8(9)
assert abs(rm.ssim(a, b) - rm.ssim(a / 255, b / 255)) < 1e-9, rm.ssim(a, b)
"""),
    either("psnr of uint8 against 0..1", "a = np.full((4, 4, 3), 128, np.uint8)\nassert rm.psnr(a, a / 255) > 60",
           "uint8|0..1"),
    refused("psnr of images of two sizes", "rm.psnr(np.zeros((4, 4, 3)), np.zeros((5, 4, 3)))", "one shape"),
    refused("psnr of nothing", "rm.psnr(np.zeros((0, 4, 3)), np.zeros((0, 4, 3)))", "empty|no pixels"),
    refused("psnr of NaN", "rm.psnr(np.full((4, 4, 3), np.nan), np.zeros((4, 4, 3)))", "finite|nan"),
    refused("psnr of a name", "rm.psnr('a.png', 'b.png')", "image"),
    refused("psnr of None", "rm.psnr(None, None)", "image|empty|None"),
    refused("psnr of images in 0..255 as floats", "rm.psnr(np.full((4, 4, 3), 200.0), np.full((4, 4, 3), 199.0))",
            "0..1|255"),
    refused("ssim of 8 x 8", "rm.ssim(np.zeros((8, 8, 3)), np.zeros((8, 8, 3)))", "11"),
    refused("ssim of a number", "rm.ssim(0.5, 0.5)", "image|11"),
    works("psnr of the same image is infinite", "a = np.full((4, 4, 3), 0.5)\nassert rm.psnr(a, a) == float('inf')"),
    works("write_png of (height, width)", "rm.write_png('a.png', np.full((4, 6), 0.5))", makes=PNG),
    either("write_png of an X-ray of 10.6", """
import logging, io
said = io.StringIO()
logging.getLogger('raymarch').addHandler(logging.StreamHandler(said))
rm.write_png('a.png', np.full((4, 4, 3), 10.6))
assert said.getvalue(), 'unhelpful: clipped to white without a word'
""", "10.6|0..1", makes=PNG),
    either("write_png of negative numbers", "rm.write_png('a.png', np.full((4, 4, 3), -1e-9))", "-1", makes=PNG),
    refused("write_png of NaN", "rm.write_png('a.png', np.full((4, 4, 3), np.nan))", "nan"),
    refused("write_png of two channels", "rm.write_png('a.png', np.zeros((4, 4, 2)))", r"\(4, 4, 2\)"),
    refused("write_png of channels first", "rm.write_png('a.png', np.zeros((3, 40, 60)))", r"\(3, 40, 60\)"),
    refused("write_png of whole numbers", "rm.write_png('a.png', np.zeros((4, 4, 3), int))", "int"),
    refused("write_png of nothing", "rm.write_png('a.png', np.zeros((0, 4, 3)))", r"\(0, 4, 3\)"),
    refused("write_png of a text", "rm.write_png('a.png', 'image')", "image"),
    refused("write_png of None", "rm.write_png('a.png', None)", "image"),
    refused("write_png: arguments swapped", "rm.write_png(np.zeros((4, 4, 3)), 'a.png')", "path|png|swap"),
    refused("write_png of a Rendering",
            "rm.write_png('a.png', rm.render(ball, camera, extras=True))", "image|Rendering"),
    refused("write_png to .jpg", "rm.write_png('a.jpg', np.zeros((4, 4, 3)))", "a.jpg"),
    refused("write_png to a folder that is not there", "rm.write_png('nix/a.png', np.zeros((4, 4, 3)))", "nix"),
    refused("splat of no points' values", "rm.splat(np.zeros((3, 2)), np.zeros(4), (8, 8))", "values|4"),
    refused("splat of NaN", "rm.splat(np.full((3, 2), np.nan), np.zeros(3), (8, 8))", "point 0|nan at"),
    refused("splat of texts", "rm.splat('a', 'b', (8, 8))", "positions|values"),
    refused("splat into no image", "rm.splat(np.zeros((3, 2)), np.zeros(3), 8)", "shape"),
    refused("splat into 10^12 samples", "rm.splat(np.zeros((3, 3)), np.zeros(3), (10**4,) * 3)", "bytes"),
    works("splat of points far outside is nothing", """
got = rm.splat(np.array([[1e30, -1e30], [-50.0, 3]]), np.ones(2), (8, 8))
assert not got.any(), got.sum()
"""),
    refused("cgls with a start of another size", """
A = rm.Operator(lambda v: v, lambda v: v)
rm.cgls(A, np.ones(4), start=np.ones(3))
""", "start"),
    refused("cgls of NaN", "rm.cgls(rm.Operator(lambda v: v, lambda v: v), np.full(4, np.nan))", "finite|nan"),
    refused("cgls of no operator", "rm.cgls(None, np.ones(4))", "operator|None"),
    refused("conjugate_gradients of a matrix", "rm.conjugate_gradients(np.eye(4), np.ones(4))",
            "apply|function|callable|ndarray"),
    refused("gauss_newton of a residual alone", "rm.gauss_newton(lambda x: x, np.ones(3))", "Jacobian|pair|residual"),
    refused("gauss_newton of NaN", "rm.gauss_newton(lambda x: (x * np.nan, np.eye(3)), np.ones(3))", "finite"),
    refused("gauss_newton with a Jacobian turned",
            "rm.gauss_newton(lambda x: (np.ones(5), np.ones((3, 5))), np.ones(3))",
            "Jacobian"),
    refused("levenberg_marquardt with no steps",
            "rm.levenberg_marquardt(lambda x: (x, np.eye(3)), np.ones(3), steps=-1)",
            "steps"),
    refused("levenberg_marquardt from a text",
            "rm.levenberg_marquardt(lambda x: (x, np.eye(3)), 'here')", "start|x|here"),
    works("a linear problem that is solved is called solved", """
for seed in range(8):
    A = np.random.default_rng(seed).normal(size=(6, 3))
    b = A @ np.ones(3)
    found = rm.levenberg_marquardt(lambda x: (A @ x - b, A), np.zeros(3), steps=60)
    assert np.abs(found.x - 1).max() < 1e-6 and found.converged, found
"""),
    works("a camera that looks away sees the background", """
away = rm.Camera.look_at((0, -4, 0), (0, -8, 0), width=8, height=8)
image = rm.render(ball, away, background='0.2,0.4,0.6')
assert np.allclose(image, (0.2, 0.4, 0.6), atol=1e-6), image[0, 0]
"""),
    works("a camera inside the volume", """
inside = rm.Camera.look_at((0.1, 0, 0), (1, 0, 0), width=8, height=8)
assert np.isfinite(rm.render(ball, inside)).all(), 'not finite'
"""),
    works("a camera 1e6 away", "image = rm.render(ball, rm.Camera.look_at((1e6, 0, 0), width=8, height=8))\n"
          "assert np.isfinite(image).all(), 'not finite'"),
    works("a field of view of 179 degrees", "image = rm.render(ball, rm.Camera.look_at((4, 0, 0), fov=3.12, width=8,"
          " height=8))\nassert np.isfinite(image).all(), 'not finite'"),
    works("an image of 1 x 1 pixel", "assert rm.render(ball, rm.Camera.look_at((4, 0, 0), width=1, height=1)).shape =="
          " (1, 1, 3)"),
    works("the same image twice is the same bytes", """
with rm.Renderer(ball) as renderer:
    a, b = (renderer.render(camera).image.tobytes() for _ in range(2))
assert a == b, 'differs'
"""),
    works("arrays given are not written to", """
image = views.rgb(0)
before = image.copy(), ball.density.copy()
rm.render(ball, camera); rm.psnr(image, image); rm.plot.slices(ball)
assert (image == before[0]).all() and (ball.density == before[1]).all(), 'written to'
"""),
    works("a volume with an empty middle is still seen whole", """
shell = rm.Volume.from_function(lambda p: 50.0 * (abs(np.linalg.norm(p, axis=-1) - 0.7) < 0.2), shape=(24,) * 3)
opaque = rm.render(shell, rm.Camera.look_at((0, -4, 0), width=9, height=9), extras=True).opacity[4, 4]
assert opaque > 0.99, opaque
"""),
    works("an evaluation's repr is short", "score = rm.evaluate(ball, views)\nassert len(repr(score)) < 300,"
          " f'unhelpful: {len(repr(score))} characters'"),
    works("a fit's numbers say what rays they are of", """
fit = rm.fit(views, 'quick', steps=3, resolution=8)
assert 'rays' in repr(fit) or 'dB' not in repr(fit), repr(fit)
"""),
]  # fmt: skip
