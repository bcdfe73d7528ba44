"""Volumes made in Python: numbers, shapes, saving and reading back."""

from __future__ import annotations

from hostile_cases.case import Area, Case

area = Area("volumes")
HEAD = """
eye, one = np.eye(4), np.ones((4, 4, 4), np.float32)
rgb = np.ones((4, 4, 4, 3), np.float32)
relu = rm.Activation("relu", 0.0, 1.0, "clamped")
"""


def refused(name: str, source: str, says: str, **more) -> Case:
    """A volume that cannot be."""
    return area.python_refused(name, HEAD + source, says, **more)


def works(name: str, source: str, **more) -> Case:
    """A volume that is fine."""
    return area.python_works(name, HEAD + source, **more)


def kept(name: str, source: str) -> Case:
    """What is saved is read back as it was."""
    return works(
        name,
        source
        + """
rm.save(v, "out.h5")
back = rm.load("out.h5")
assert np.array_equal(back.density, v.density) and np.array_equal(back.features, v.features), "other numbers"
assert np.array_equal(back.world_from_index, v.world_from_index) and back.activation == v.activation, "other notes"
""",
        makes=("out.h5",),
    )


ARRAYS = [
    refused("an array alone", "rm.Volume(one)", "features|world_from_index", foreign=("TypeError",)),
    refused("density is a list of texts", "rm.Volume([['a']], rgb, eye)", "density"),
    refused("density is None", "rm.Volume(None, rgb, eye)", "density"),
    refused("density is a path", "rm.Volume('ball.h5', rgb, eye)", "density"),
    refused("density is a volume", "rm.Volume(ball, rgb, eye)", "density"),
    refused("density of two axes", "rm.Volume(one[0], rgb, eye)", r"density.*\(4, 4\)"),
    refused("density of one sample", "rm.Volume(one[:1], rgb[:1], eye)", "density"),
    refused("density of no samples", "rm.Volume(one[:0], rgb[:0], eye)", "density"),
    refused("density of whole numbers", "rm.Volume(one.astype(int), rgb, eye)", "density is int"),
    refused("density of booleans", "rm.Volume(one > 0, rgb, eye)", "density is (a |an |)bool"),
    refused("density of complex numbers", "rm.Volume(one + 0j, rgb, eye)", "density is (a |an |)complex"),
    refused("density of objects", "rm.Volume(one.astype(object), rgb, eye)", "density is (a |an |)object"),
    refused("one NaN in density", "one[1, 2, 3] = np.nan; rm.Volume(one, rgb, eye)", r"density.*\(1, 2, 3\)"),
    refused("one infinity in features", "rgb[1, 2, 3, 0] = np.inf; rm.Volume(one, rgb, eye)", "features (is|are) inf"),
    refused("density of 1e300, which f32 cannot hold", "rm.Volume(1e300 * one.astype(float), rgb, eye, relu)",
            "density|1e\\+?300"),
    refused("features of 1e300", "rm.Volume(one, 1e300 * rgb.astype(float), eye, relu)", "features|1e\\+?300"),
    refused("features of two axes less", "rm.Volume(one, rgb[0], eye)", "features"),
    refused("features of another shape", "rm.Volume(one, rgb[:3], eye)", "features"),
    refused("features of 4 channels", "rm.Volume(one, np.ones((4, 4, 4, 4)), eye)", "features.*channels"),
    refused("features of degree 4", "rm.Volume(one, np.ones((4, 4, 4, 75)), eye)", "features.*channels"),
    refused("density and features swapped", "rm.Volume(rgb, one, eye)", "density|features"),
    refused("a world of 3 x 3", "rm.Volume(one, rgb, eye[:3, :3])", "world_from_index"),
    refused("a world that is a text", "rm.Volume(one, rgb, 'world')", "world_from_index"),
    refused("a world of None", "rm.Volume(one, rgb, None)", "world_from_index"),
    refused("a world without inverse", "rm.Volume(one, rgb, np.diag([1, 1, 0, 1]))", "world_from_index"),
    refused("a world of NaN", "rm.Volume(one, rgb, eye * np.nan)", "world_from_index"),
    refused("a world of 1e300", "rm.Volume(one, rgb, np.diag([1e300, 1, 1, 1]))", "world_from_index"),
    refused("a world with a perspective", "eye[3, 0] = 1; rm.Volume(one, rgb, eye)", "world_from_index.*last row"),
    refused("the box instead of the world", "rm.Volume(one, rgb, [(-1, -1, -1), (1, 1, 1)])", "world_from_index"),
    refused("activation None", "rm.Volume(one, rgb, eye, None)", "activation"),
    refused("activation a name", "rm.Volume(one, rgb, eye, 'relu')", "activation"),
    refused("an activation nobody knows", "rm.Activation('tanh')", "tanh"),
    refused("an activation's scale of 0", "rm.Activation(scale=0)", "scale (is )?0"),
    refused("an activation's scale negative", "rm.Activation(scale=-1.0)", "scale (is )?-1"),
    refused("an activation's shift NaN", "rm.Activation(shift=float('nan'))", "shift (is )?nan"),
    refused("an activation's shift a text", "rm.Activation(shift='0')", "shift"),
    refused("an initial opacity of 2", "rm.Activation.of_initial_alpha(2.0, 1.0)", "alpha is 2"),
    refused("a background of names", "rm.Volume(one, rgb, eye, background='blue')", "background (is )?'blue'"),
    refused("a background of 2", "rm.Volume(one, rgb, eye, background=(2, 0, 0))", "background"),
    refused("provenance a text", "rm.Volume(one, rgb, eye, provenance='me')", "provenance"),
    refused("from_function: sigma is no function", "rm.Volume.from_function(3.0)", "sigma"),
    refused("from_function: a shape of floats", "rm.Volume.from_function(lambda p: p[..., 0], shape=(4.5, 4, 4))",
            "shape"),
    refused("from_function: a shape of one number", "rm.Volume.from_function(lambda p: p[..., 0], shape=8)", "shape"),
    refused("from_function: a shape of 10^12", "rm.Volume.from_function(lambda p: p[..., 0], shape=(10**4,) * 3)",
            "10000"),
    refused("from_function: a box upside down",
            "rm.Volume.from_function(lambda p: p[..., 0], shape=(4, 4, 4), box=((1, 1, 1), (-1, -1, -1)))", "box"),
    refused("from_function: sigma of another shape",
            "rm.Volume.from_function(lambda p: np.ones(7), shape=(4, 4, 4))", "sigma|density|shape"),
    refused("from_function: NaN", "rm.Volume.from_function(lambda p: p[..., 0] * np.nan, shape=(4, 4, 4))", "nan"),
    refused("moved by a text", "ball.moved('up')", "moved|affine|world|4, 4"),
    refused("moved by a flat matrix", "ball.moved(np.zeros((4, 4)))", "world_from_index|affine"),
    works("arrays are not written to", "v = rm.Volume(one, rgb, eye)\n"
          "try:\n    v.density[0, 0, 0] = 5\nexcept ValueError:\n    pass\nelse:\n    assert False, 'was written to'"),
    works("x-ray of a density of 3e38 is finite or refused", """
camera = rm.Camera.look_at((1.5, -6, 1.5), (1.5, 1.5, 1.5), width=4, height=4)
try:
    v = rm.Volume(np.full((4, 4, 4), 3e38, np.float32), rgb, eye, relu)
    image = rm.render(v, camera, march=rm.March(mode='x-ray'))
except rm.RaymarchError:
    pass
else:
    assert np.isfinite(image).all(), 'infinite without a word'
"""),
]  # fmt: skip

SAVED = [
    kept("big-endian numbers", "v = rm.Volume(one.astype('>f4'), rgb, eye)"),
    kept("Fortran order", "v = rm.Volume(np.asfortranarray(one), np.asfortranarray(rgb), eye)"),
    kept("a view with strides", "v = rm.Volume(np.ones((8, 8, 8), 'f4')[::2, ::2, ::-2], rgb, eye)"),
    kept("float64", "v = rm.Volume(one.astype('f8') / 3, rgb.astype('f8'), eye)"),
    kept("a read-only array", "one.setflags(write=False); v = rm.Volume(one, rgb, eye)"),
    kept("the identity activation", "v = rm.Volume(one, rgb, eye, rm.Activation('identity', colour='identity'))"),
    kept("tiny numbers", "v = rm.Volume(one * 1e-45, rgb, eye)"),
    works("NaN in provenance becomes null", "rm.save(rm.Volume(one, rgb, eye, provenance={'a': float('nan')}),"
          " 'out.h5')\nassert rm.load('out.h5').provenance == {'a': None}", makes=("out.h5",)),
    refused("provenance that holds itself", "p = {}; p['p'] = p\nrm.save(rm.Volume(one, rgb, eye, provenance=p),"
            " 'out.h5')", "provenance"),
    refused("provenance of objects", "rm.save(rm.Volume(one, rgb, eye, provenance={'a': object()}), 'out.h5')",
            "provenance.a"),
    refused("provenance with numbers as keys", "rm.save(rm.Volume(one, rgb, eye, provenance={1: 2}), 'out.h5')",
            "provenance"),
    refused("half precision", "rm.save(rm.Volume(one.astype('f2'), rgb, eye), 'out.h5')", "float16"),
    refused("save: arguments swapped", "rm.save('out.h5', ball)", "volume|swap"),
    refused("save: no volume", "rm.save(None, 'out.h5')", "volume|None"),
    refused("save: a camera", "rm.save(camera, 'out.h5')", "volume|Camera"),
    refused("save: the path is None", "rm.save(ball, None)", "path|None"),
    refused("save: the path is a number", "rm.save(ball, 7)", "path|7"),
    refused("save: the path is an open file", "rm.save(ball, open('x.h5', 'wb'))", "path|file", makes=("x.h5",)),
    refused("load: the path is None", "rm.load(None)", "path|None"),
    refused("load: the path is a number, an open file's", "rm.load(0)", "path|0"),
    refused("load: a volume", "rm.load(ball)", "path|volume|Volume"),
    refused("load_views: a number", "rm.load_views(0)", "path|folder|0"),
    refused("describe: None", "rm.describe(None)", "path|None"),
    works("a path of bytes or os.PathLike", "import pathlib\nrm.save(ball, pathlib.Path('out.h5'))\n"
          "rm.load(pathlib.Path('out.h5'))", makes=("out.h5",)),
]  # fmt: skip

CASES = [*ARRAYS, *SAVED]
