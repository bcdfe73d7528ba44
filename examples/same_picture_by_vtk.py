"""The same picture through a transfer function by VTK and by raymarch.

Needs VTK and a driver for OpenGL. docs/transfer.md says in which words the two agree.
"""

import numpy as np
import vtk
from vtk.util.numpy_support import numpy_to_vtk, vtk_to_numpy

import raymarch as rm


def picture_of_vtk(volume, table, camera, background=(0, 0, 0), step=0.1):
    """(height, width, 3) in 0..1 by VTK's ray caster, of a volume whose axes are at right angles."""
    edges = np.linalg.norm(volume.world_from_index[:3, :3], axis=0)
    image = vtk.vtkImageData()
    image.SetDimensions(volume.shape)
    image.SetSpacing(edges)
    image.SetOrigin(volume.world_from_index[:3, 3])
    image.SetDirectionMatrix((volume.world_from_index[:3, :3] / edges).ravel().tolist())
    image.GetPointData().SetScalars(numpy_to_vtk(volume.numbers().ravel(order="F"), deep=True))  # x runs fastest

    colours, opacities, look = vtk.vtkColorTransferFunction(), vtk.vtkPiecewiseFunction(), vtk.vtkVolumeProperty()
    for value, colour, opacity in zip(table.values, table.colours, table.opacities, strict=True):
        colours.AddRGBPoint(value, *colour)
        opacities.AddPoint(value, opacity)
    look.SetColor(colours)
    look.SetScalarOpacity(opacities)
    look.SetInterpolationTypeToLinear()
    look.ShadeOff()
    look.SetScalarOpacityUnitDistance(table.unit_length)
    mapper = vtk.vtkGPUVolumeRayCastMapper()
    mapper.SetInputData(image)
    mapper.AutoAdjustSampleDistancesOff()
    mapper.SetSampleDistance(step * edges.min())
    actor = vtk.vtkVolume()
    actor.SetMapper(mapper)
    actor.SetProperty(look)

    scene, window, frame = vtk.vtkRenderer(), vtk.vtkRenderWindow(), vtk.vtkWindowToImageFilter()
    scene.SetBackground(background)
    scene.AddVolume(actor)
    _, up, back, eye = camera.world_from_camera[:3].T
    view = scene.GetActiveCamera()
    view.SetPosition(eye)
    view.SetFocalPoint(eye - back)
    view.SetViewUp(up)
    half = camera.height / 2 / camera.focal[1]  # of the image, at a distance of 1; the principal point is in its middle
    view.SetViewAngle(np.degrees(2 * np.arctan(half)))
    if camera.lens.model == "orthographic":
        view.ParallelProjectionOn()
        view.SetParallelScale(half)
    scene.ResetCameraClippingRange()
    window.OffScreenRenderingOn()
    window.SetMultiSamples(0)
    window.SetSize(camera.width, camera.height)
    window.AddRenderer(scene)
    frame.SetInput(window)
    frame.ReadFrontBufferOff()
    frame.Update()
    pixels = vtk_to_numpy(frame.GetOutput().GetPointData().GetScalars())
    return pixels.reshape(camera.height, camera.width, -1)[::-1, :, :3] / 255


x = np.stack(np.meshgrid(np.linspace(0, 1, 16), np.linspace(0, 1, 24), np.linspace(0, 1, 20), indexing="ij"), -1)
values = np.round(100 * np.exp(-9 * ((x - (0.3, 0.4, 0.6)) ** 2).sum(-1))).astype(np.uint8)
volume = rm.ScalarVolume(values, np.diag([1.0, 1.0, 1.5, 1.0]))
table = rm.TransferFunction(
    [20, 40, 90], [(0.2, 0.3, 0.9), (0.9, 0.3, 0.2), (1, 1, 0.9)], [0, 0.1, 0.6], unit_length=2.0
)
camera = rm.Camera.look_at(eye=(40, -30, 25), target=(8, 12, 14), width=64, height=48)
march = rm.March(mode="transfer", transfer=table, step=0.1)
ours = rm.render(volume, camera, background="black", march=march)
off = np.abs(ours - picture_of_vtk(volume, table, camera))
print(f"{off.mean():.4f} in the mean, {off.max():.3f} at worst")
assert ours.max() > 0.5 and off.mean() < 0.001 and off.max() < 0.008
