"""Runs inside Blender: renders the scenes of job.json with Cycles and writes the seconds per
picture. The look follows what is published about CLEVR: a grey floor, three area lamps, matte
rubber and shiny metal."""

import json
import sys
import time
from pathlib import Path

import bpy
from mathutils import Vector

PLACE = Vector((7.4811, -6.5076, 5.3437))
SENSOR = 24.0
"""Millimetres across a square picture: the middle three quarters of CLEVR's sensor of 32."""


def material(name: str, rgb: list[float], metal: bool) -> bpy.types.Material:
    made = bpy.data.materials.new(name)
    made.use_nodes = True
    inputs = made.node_tree.nodes["Principled BSDF"].inputs
    inputs["Base Color"].default_value = (
        *rgb,
        1,
    )  # as CLEVR does: its colours are not taken for sRGB
    inputs["Metallic"].default_value = 1.0 if metal else 0.0
    inputs["Roughness"].default_value = 0.18 if metal else 0.75
    return made


def solid(spec: dict) -> None:
    radius, (x, y) = spec["radius"], spec["xy"]
    at = {"location": (x, y, radius), "rotation": (0, 0, spec["angle"])}
    if spec["shape"] == "sphere":
        bpy.ops.mesh.primitive_uv_sphere_add(radius=radius, segments=64, ring_count=32, **at)
        bpy.ops.object.shade_smooth()
    elif spec["shape"] == "cylinder":
        bpy.ops.mesh.primitive_cylinder_add(radius=radius, depth=2 * radius, vertices=64, **at)
    else:
        bpy.ops.mesh.primitive_cube_add(size=2 * radius, **at)
    made = bpy.context.object
    if spec["shape"] != "sphere":
        edge = made.modifiers.new("edge", "BEVEL")
        edge.width, edge.segments = 0.04 * radius, 3
    made.data.materials.append(material("solid", spec["rgb"], spec["material"] == "metal"))


def towards_middle(place: Vector) -> tuple:
    return (-place).to_track_quat("-Z", "Y").to_euler()


def lamp(spec: dict) -> None:
    place = Vector(spec["place"])
    bpy.ops.object.light_add(type="AREA", location=place, rotation=towards_middle(place))
    data = bpy.context.object.data
    data.energy, data.size, data.color = 2.15 * spec["power"], spec["side"], spec["rgb"]


def stage(job: dict, spec: dict) -> None:
    """An empty Blender, and the scene in it."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    bpy.ops.mesh.primitive_plane_add(size=60)
    bpy.context.object.data.materials.append(material("floor", [0.8, 0.8, 0.8], False))
    place = PLACE + Vector(spec["camera"])
    bpy.ops.object.camera_add(location=place, rotation=towards_middle(place))
    scene.camera = bpy.context.object
    scene.camera.data.lens, scene.camera.data.sensor_width = 35.0, SENSOR
    for each in spec["lamps"]:
        lamp(each)
    for each in spec["objects"]:
        solid(each)
    scene.world = bpy.data.worlds.new("world")
    scene.world.use_nodes = True
    scene.world.node_tree.nodes["Background"].inputs[0].default_value = (0.17, 0.17, 0.17, 1)
    render = scene.render
    render.engine, render.resolution_x, render.resolution_y = "CYCLES", job["size"], job["size"]
    render.resolution_percentage, render.threads_mode, render.threads = 100, "FIXED", job["threads"]
    render.image_settings.file_format = "PNG"
    scene.view_settings.view_transform = "Standard"
    scene.cycles.device, scene.cycles.samples, scene.cycles.use_denoising = (
        "CPU",
        job["samples"],
        False,
    )
    scene.cycles.use_adaptive_sampling = False


def main(folder: Path) -> None:
    job, seconds = json.loads((folder / "job.json").read_text()), []
    for i, spec in enumerate(
        [job["scenes"][0], *job["scenes"]]
    ):  # the first is rendered once more, to warm up
        stage(job, spec)
        bpy.context.scene.render.filepath = str(folder / f"{max(0, i - 1)}.png")
        began = time.perf_counter()
        bpy.ops.render.render(write_still=True)
        seconds.append(time.perf_counter() - began)
    (folder / "seconds.json").write_text(json.dumps(seconds[1:]))


main(Path(sys.argv[sys.argv.index("--") + 1]))
