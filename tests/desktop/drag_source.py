"""Stands in for a file manager: a window from which the paths given can be dragged."""

import sys

import gi

gi.require_version("Gtk", "3.0")
gi.require_version("Gdk", "3.0")
from gi.repository import Gdk, GLib, Gtk  # noqa: E402

uris = [GLib.filename_to_uri(path, None) for path in sys.argv[1:]]
window = Gtk.Window(title="perch-drag-source")
window.set_default_size(150, 100)
window.set_decorated(False)
handle = Gtk.EventBox()
handle.add(Gtk.Label(label="Drag me"))
handle.drag_source_set(Gdk.ModifierType.BUTTON1_MASK, [], Gdk.DragAction.COPY)
handle.drag_source_add_uri_targets()
handle.connect("drag-data-get", lambda _widget, _context, data, _info, _time: data.set_uris(uris))
window.add(handle)
window.connect("destroy", Gtk.main_quit)
window.show_all()
Gtk.main()
