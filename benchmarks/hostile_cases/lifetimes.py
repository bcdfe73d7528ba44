"""Use after close, from other threads and forks, again and again; what is left in memory."""

from __future__ import annotations

from hostile_cases.case import Area

area = Area("lifetimes")
refused, works, either = area.python_refused, area.python_works, area.python_either
RESIDENT = """
import gc, os
def resident():
    gc.collect()
    return int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 1e6
"""
LINUX = ("linux",)

CASES = [
    refused("a closed renderer", "with rm.Renderer(ball) as r:\n    r.render(camera)\nr.render(camera)", "closed"),
    works("closed twice", "r = rm.Renderer(ball)\nr.close()\nr.close()"),
    refused("a fitter after its with", """
with rm.Fitter(views, rm.preset('quick', resolution=8)) as f:
    f.step()
f.step()
""", "closed"),
    refused("a fitter's volume after its with", """
with rm.Fitter(views, rm.preset('quick', resolution=8)) as f:
    f.step()
f.volume()
""", "closed"),
    refused("Linearised after its with", "with rm.Linearised(ball, camera) as s:\n    pass\ns.image()", "closed"),
    refused("a scene whose Linearised is closed", """
seen = rm.Linearised(ball, camera)
scene = rm.Scene(seen)
seen.close()
scene.render()
""", "closed"),
    refused("a splat after close", "s = rm.Splat(3, (8, 8))\ns.close()\ns.deposit()", "closed"),
    works("an error in a with leaves the next renderer whole", """
try:
    with rm.Renderer(ball) as r:
        raise KeyError
except KeyError:
    pass
a = rm.render(ball, camera)
assert np.isfinite(a).all() and a.min() < 0.9, 'empty'
"""),
    works("two renderers at once", """
with rm.Renderer(ball) as a, rm.Renderer(ball) as b:
    x = a.render(camera).image
    a.close()
    assert (b.render(camera).image == x).all(), 'differs'
"""),
    works("a renderer inside a fit", """
with rm.Fitter(views, rm.preset('quick', resolution=8, steps=4)) as f:
    f.step()
    rm.render(ball, camera)
    f.step()
    assert np.isfinite(f.volume().density).all(), 'not finite'
"""),
    works("a volume changed by hand while a renderer lives", """
with rm.Renderer(ball) as r:
    a = r.render(camera).image
    rm.Volume(ball.density * 0, ball.features, ball.world_from_index)
    assert (r.render(camera).image == a).all(), 'changed'
"""),
    refused("from another thread", """
import threading
rm.render(ball, camera)
found = []
def work():
    try:
        rm.render(ball, camera)
    except rm.RaymarchError as error:
        found.append(error)
thread = threading.Thread(target=work); thread.start(); thread.join()
assert found, 'marched in another thread'
raise found[0]
""", "thread"),
    works("first used in a thread, and only there", """
import threading
found = []
thread = threading.Thread(target=lambda: found.append(rm.render(ball, camera).shape)); thread.start(); thread.join()
assert found == [(24, 24, 3)], found
"""),
    works("a fit in a thread, where signals cannot be caught", """
import threading
found = []
def work():
    found.append(rm.fit(views, 'quick', steps=3, resolution=8))
thread = threading.Thread(target=work); thread.start(); thread.join()
assert found, 'no fit'
"""),
    works("in a fork of a process that marched: an exception, no crash", """
import os
rm.render(ball, camera)
pid = os.fork()
if pid == 0:
    try:
        rm.render(ball, camera)
    except rm.RaymarchError as error:
        os._exit(7 if 'fork' in str(error) else 8)
    os._exit(9)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert code == 7, f'the fork ended with {code}'
""", needs=("posix",)),
    refused("again in another precision", "rm.start('cpu', 'f32')\nrm.start('cpu', 'f64')", "f64.*f32"),
    refused("again with more threads", "rm.start('cpu', threads=1)\nrm.start('cpu', threads=2)", "threads 2"),
    works("again as it was", "rm.start('cpu')\nrm.start('cpu')\nrm.start()"),
    works("pickled and back", """
import pickle
assert (pickle.loads(pickle.dumps(ball)).density == ball.density).all(), 'volume'
assert (pickle.loads(pickle.dumps(camera)).world_from_camera == camera.world_from_camera).all(), 'camera'
assert len(pickle.loads(pickle.dumps(views))) == 12, 'views'
"""),
    works("copied deeply", "import copy\nassert (copy.deepcopy(ball).density == ball.density).all(), 'volume'"),
    either("two equal cameras compared", "camera == camera\nhash(camera)", "compare|hash"),
    works("every public name is there", "for name in rm.__all__:\n    assert getattr(rm, name) is not None, name"),
    works("repr and dir of everything do not fail", """
for thing in (ball, views, camera, rm.March(), rm.preset('quick'), rm.Activation()):
    assert '\\n' not in repr(ball), 'repr of several lines'
    dir(thing)
"""),
    works("KeyboardInterrupt in a show function ends the fit and frees it", """
def show(report):
    raise KeyboardInterrupt
try:
    rm.fit(views, 'quick', steps=50, resolution=8, show=show)
except KeyboardInterrupt:
    pass
assert rm.fit(views, 'quick', steps=3, resolution=8).volume.shape, 'no fit'
"""),
    works("an exception in a show function ends the fit and frees it", """
try:
    rm.fit(views, 'quick', steps=30, resolution=8, show=lambda report: 1 / 0)
except ZeroDivisionError:
    pass
assert rm.fit(views, 'quick', steps=3, resolution=8).volume.shape, 'no fit'
"""),
    works("register from a camera that looks away answers", """
import time
away = rm.Camera.look_at(camera.position, 2 * camera.position, fov=0.5, width=24, height=24)
began = time.process_time()
try:
    found = rm.register(ball, views.rgb(0), away)
    assert not found.converged or found.error > 0.05, 'found where nothing is'
except rm.RaymarchError as error:
    assert 'camera' in str(error) or 'sees' in str(error), str(error)
assert time.process_time() - began < 30, f'{time.process_time() - began:.0f} s'
""", seconds=40),
    works("register from the far side answers", """
behind = views.cameras[3]
try:
    rm.register(ball, views.rgb(0), behind)
except rm.RaymarchError as error:
    assert '\\n' not in str(error), str(error)
""", seconds=40),
    works("300 calls of rm.render: memory flat within 2 % after the fifth", RESIDENT + """
for n in range(300):
    rm.render(ball, camera)
    if n == 5:
        before = resident()
after = resident()
assert after < 1.02 * before + 2, f'{before:.0f} MB after 5 calls, {after:.0f} after 300'
""", seconds=120, needs=LINUX),
    works("20 calls of rm.render: the later ones do not compile", """
import time
rm.render(ball, camera); rm.render(ball, camera)
began = time.process_time()
for _ in range(20):
    rm.render(ball, camera)
spent = (time.process_time() - began) / 20
assert spent < 0.4, f'unhelpful: {spent:.1f} s of CPU a call'
""", seconds=60),
    works("5 calls of rm.jacobian: the later ones do not compile", """
import time
spent = []
for _ in range(5):
    began = time.process_time()
    rm.jacobian(ball, camera, ['pose'])
    spent.append(time.process_time() - began)
assert spent[-1] < 0.5, f'unhelpful: {spent[-1]:.1f} s of CPU for the fifth'
""", seconds=60),
    works("20 renderers dropped without close", RESIDENT + """
big = rm.Volume(np.zeros((96,) * 3, 'f4'), np.zeros((96,) * 3 + (3,), 'f4'), ball.world_from_index)
rm.Renderer(big); rm.Renderer(big)
before = resident()
for _ in range(20):
    rm.Renderer(big)
assert resident() - before < 100, f'{resident() - before:.0f} MB pile up'
""", seconds=60, needs=LINUX),
    works("20 fitters dropped in the middle", RESIDENT + """
for n in range(12):
    fitter = rm.Fitter(views, rm.preset('quick', resolution=48))
    fitter.step()
    if n == 1:
        before = resident()
assert resident() - before < 150, f'{resident() - before:.0f} MB pile up'
""", seconds=120, needs=LINUX),
    either("TorchMarch's own example", """
try:
    import torch
except ImportError:
    raise rm.RaymarchError('torch is not there; want pip install "raymarch[torch]"')
march = rm.TorchMarch((8, 8, 8))
template = torch.rand(1, 4, 8, 8, 8, requires_grad=True)
v, u = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing='ij')
image = march(template, torch.tensor([[0.0, 0, -4]]), torch.eye(3)[None], torch.tensor([[16.0, 16]]),
              torch.tensor([[4.0, 4]]), torch.stack([u, v], -1)[None], dt=0.1)
image.sum().backward()
assert torch.isfinite(template.grad).all() and template.grad.abs().sum() > 0, 'no gradient'
""", "torch", seconds=90),
    works("check_gradients of the harmonic l = 3, m = 0 alone", """
features = np.zeros((6, 6, 6, 48)); features[..., 36:39] = 0.7
world = ball.world_from_index * (np.ones((4, 4)) + np.diag([1.5, 1.5, 1.5, 0]))
v = rm.Volume(np.full((6, 6, 6), 1.0), features, world, rm.Activation('softplus', 0.0, 1.0, 'identity'))
report = rm.check_gradients(v, camera, ['pose'], rays=16)
assert report.good, str(report)
""", seconds=120),
]  # fmt: skip
