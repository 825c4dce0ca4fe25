# SPDX-License-Identifier: Apache-2.0
"""Framebuffers that are never freed, through EGL and OpenGL ES: a renderer's leak, on purpose.

EGL 1.4 and later with EGL_MESA_platform_surfaceless or EGL_EXT_platform_device, else the default
display; a context of OpenGL ES 2 without a surface, else with a pbuffer.  Each surface is a
texture on a framebuffer of its own, cleared so that it is really there.  The driver gives them
back when the process ends.
"""

import ctypes
from collections.abc import Callable, Iterator, Mapping
from ctypes import POINTER, byref, c_char_p, c_int, c_uint, c_void_p
from typing import Any, Final

from seawall.lab.libraries import DriverProblem, function, load
from seawall.lab.plan import Plan

_PROVIDED_BY: Final = (
    "apt-get install libegl1 libgles2, and the driver's own part (in a container: the nvidia "
    'runtime, with the capability "graphics"; for software libegl-mesa0 libgl1-mesa-dri)'
)
SOFTWARE: Final = ("llvmpipe", "softpipe", "swrast", "software rasterizer", "swiftshader")
"""In GL_RENDERER, in small letters."""
SIDE: Final = 2048
SURFACE_BYTES: Final = SIDE * SIDE * 4
"""RGBA, a byte each."""
_DEVICES_MOST: Final = 64
_SURFACELESS, _DEVICE = 0x31DD, 0x313F
_EGL_NONE, _EXTENSIONS, _ES_API = 0x3038, 0x3055, 0x30A0
_CONFIG: Final = (0x3033, 0x0001, 0x3040, 0x0004)
"""EGL_SURFACE_TYPE a pbuffer, EGL_RENDERABLE_TYPE OpenGL ES 2."""
_CONTEXT: Final = (0x3098, 2)
"""EGL_CONTEXT_CLIENT_VERSION."""
_PBUFFER: Final = (0x3057, 16, 0x3056, 16)
"""EGL_WIDTH, EGL_HEIGHT."""
_TEXTURE_2D, _RGBA, _UNSIGNED_BYTE, _FRAMEBUFFER = 0x0DE1, 0x1908, 0x1401, 0x8D40
_COLOR_0, _COMPLETE, _COLOR_BIT, _RENDERER = 0x8CE0, 0x8CD5, 0x4000, 0x1F01
_GL_EXTENSIONS: Final = 0x1F03
_FREE_KIB: Final = 0x9049
"""GL_GPU_MEMORY_INFO_CURRENT_AVAILABLE_VIDMEM_NVX of GL_NVX_gpu_memory_info."""
_EGL_TYPES: Final[dict[str, tuple[Any, ...]]] = {
    "eglGetError": (c_int,),
    "eglQueryString": (c_char_p, c_void_p, c_int),
    "eglGetProcAddress": (c_void_p, c_char_p),
    "eglGetDisplay": (c_void_p, c_void_p),
    "eglInitialize": (c_uint, c_void_p, POINTER(c_int), POINTER(c_int)),
    "eglBindAPI": (c_uint, c_uint),
    "eglChooseConfig": (
        c_uint, c_void_p, POINTER(c_int), POINTER(c_void_p), c_int, POINTER(c_int),
    ),
    "eglCreateContext": (c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_int)),
    "eglCreatePbufferSurface": (c_void_p, c_void_p, c_void_p, POINTER(c_int)),
    "eglMakeCurrent": (c_uint, c_void_p, c_void_p, c_void_p, c_void_p),
}  # fmt: skip
_GL_TYPES: Final[dict[str, tuple[Any, ...]]] = {
    "glGetError": (c_uint,),
    "glGetString": (c_char_p, c_uint),
    "glGetIntegerv": (None, c_uint, POINTER(c_int)),
    "glGenTextures": (None, c_int, POINTER(c_uint)),
    "glBindTexture": (None, c_uint, c_uint),
    "glTexImage2D": (
        None, c_uint, c_int, c_int, c_int, c_int, c_int, c_uint, c_uint, c_void_p,
    ),
    "glGenFramebuffers": (None, c_int, POINTER(c_uint)),
    "glBindFramebuffer": (None, c_uint, c_uint),
    "glFramebufferTexture2D": (None, c_uint, c_uint, c_uint, c_uint, c_int),
    "glCheckFramebufferStatus": (c_uint, c_uint),
    "glClear": (None, c_uint),
    "glFinish": (None,),
}  # fmt: skip


class Renderer:
    """A current context without a window."""

    def __init__(self) -> None:
        self._egl = load("libEGL.so.1", _PROVIDED_BY)
        gles = load("libGLESv2.so.2", _PROVIDED_BY)
        self.egl = {n: function(self._egl, n, *types) for n, types in _EGL_TYPES.items()}
        self.gl = {n: function(gles, n, *types) for n, types in _GL_TYPES.items()}
        self._display = self._first_display()
        self._make_current()

    def _first_display(self) -> int:
        """The first that can be initialised: a device's own, without a screen, the default."""
        for display in self._displays():
            if display and self.egl["eglInitialize"](display, byref(c_int()), byref(c_int())):
                return display
        raise DriverProblem(
            "EGL finds no display that it can use without a screen: the driver's own part of it "
            "is missing, or /dev/dri and /dev/nvidia* are not here"
        )

    def _client_extension(self, name: str) -> bool:
        words = self.egl["eglQueryString"](None, _EXTENSIONS)
        return name.encode() in (words or b"").split()

    def _procedure(self, name: str, result: Any, *arguments: Any) -> Any:
        address = self.egl["eglGetProcAddress"](name.encode())
        return ctypes.CFUNCTYPE(result, *arguments)(address) if address else None

    def _of_platform(self, platform: int, native: int | None) -> int | None:
        if not self._client_extension("EGL_EXT_platform_base"):
            return None
        get = self._procedure(
            "eglGetPlatformDisplayEXT", c_void_p, c_uint, c_void_p, POINTER(c_int)
        )
        found: int | None = get(platform, native, None) if get else None
        return found

    def _displays(self) -> Iterator[int | None]:
        for device in sorted(self._devices(), key=self._is_software):
            yield self._of_platform(_DEVICE, device)
        yield self._of_platform(_SURFACELESS, None)
        yield self.egl["eglGetDisplay"](None)

    def _devices(self) -> list[int]:
        query = self._procedure(
            "eglQueryDevicesEXT", c_uint, c_int, POINTER(c_void_p), POINTER(c_int)
        )
        if query is None or not self._client_extension("EGL_EXT_platform_device"):
            return []
        devices, count = (c_void_p * _DEVICES_MOST)(), c_int()
        if not query(_DEVICES_MOST, devices, byref(count)):
            return []
        return [device for device in devices[: count.value] if device]

    def _is_software(self, device: int) -> bool:
        """EGL_MESA_device_software: those are tried last."""
        query = self._procedure("eglQueryDeviceStringEXT", c_char_p, c_void_p, c_int)
        words = query(device, _EXTENSIONS) if query else None
        return b"EGL_MESA_device_software" in (words or b"").split()

    def _make_current(self) -> None:
        self._need("eglBindAPI", _ES_API)
        config, count = c_void_p(), c_int()
        self._need("eglChooseConfig", self._display, _list(_CONFIG), byref(config), 1, byref(count))
        if not count.value:
            raise DriverProblem("EGL has no configuration for OpenGL ES 2 here")
        context = self._need("eglCreateContext", self._display, config, None, _list(_CONTEXT))
        if not self.egl["eglMakeCurrent"](self._display, None, None, context):
            surface = self._need("eglCreatePbufferSurface", self._display, config, _list(_PBUFFER))
            self._need("eglMakeCurrent", self._display, surface, surface, context)

    def _need(self, name: str, *arguments: Any) -> Any:
        answer = self.egl[name](*arguments)
        if not answer:
            raise DriverProblem(f"{name}: EGL error 0x{self.egl['eglGetError']():x}")
        return answer

    def about(self) -> Mapping[str, Any]:
        """The renderer's name, whether it is software, and free memory in bytes: for ``Driver``."""
        name = (self.gl["glGetString"](_RENDERER) or b"").decode("utf-8", "replace")
        is_software = any(word in name.lower() for word in SOFTWARE)
        return {"name": name, "is_software": is_software, "free_bytes": self._free_bytes()}

    def _free_bytes(self) -> int | None:
        known = (self.gl["glGetString"](_GL_EXTENSIONS) or b"").split()
        if b"GL_NVX_gpu_memory_info" not in known:
            return None
        free = c_int(-1)
        self.gl["glGetIntegerv"](_FREE_KIB, byref(free))
        return free.value << 10 if free.value >= 0 and not self.gl["glGetError"]() else None

    def surface(self) -> None:
        """One more framebuffer with a texture on it; its names are forgotten, as leaks do."""
        gl, texture, frame = self.gl, c_uint(), c_uint()
        gl["glGenTextures"](1, byref(texture))
        gl["glBindTexture"](_TEXTURE_2D, texture)
        gl["glTexImage2D"](_TEXTURE_2D, 0, _RGBA, SIDE, SIDE, 0, _RGBA, _UNSIGNED_BYTE, None)
        gl["glGenFramebuffers"](1, byref(frame))
        gl["glBindFramebuffer"](_FRAMEBUFFER, frame)
        gl["glFramebufferTexture2D"](_FRAMEBUFFER, _COLOR_0, _TEXTURE_2D, texture, 0)
        status = gl["glCheckFramebufferStatus"](_FRAMEBUFFER)
        if status == _COMPLETE:
            gl["glClear"](_COLOR_BIT)
            gl["glFinish"]()
        error = gl["glGetError"]()
        if status != _COMPLETE or error:
            raise DriverProblem(f"no more framebuffers: status 0x{status:x}, GL error 0x{error:x}")


def _list(words: tuple[int, ...]) -> Any:
    return (c_int * (len(words) + 1))(*words, _EGL_NONE)


def about() -> Mapping[str, Any]:
    """What the driver says of itself."""
    return Renderer().about()


def taker(_plan: Plan, _note: Callable[[str], None]) -> Callable[[int], int]:
    """Surfaces of 16 MiB; at least one."""
    renderer = Renderer()

    def take(piece: int) -> int:
        number = max(1, piece // SURFACE_BYTES)
        for _ in range(number):
            renderer.surface()
        return number * SURFACE_BYTES

    return take
