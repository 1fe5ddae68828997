"""Stands in for the desktop's tray: programs register their icons with it over D-Bus.

Told a menu item's label on standard input, it clicks the item in the first icon's menu and prints "clicked".
"""

import sys

from gi.repository import Gio, GLib

NAME = "org.kde.StatusNotifierWatcher"
INTERFACE = f"""<node><interface name="{NAME}">
<method name="RegisterStatusNotifierItem"><arg type="s" direction="in"/></method>
<method name="RegisterStatusNotifierHost"><arg type="s" direction="in"/></method>
<property name="RegisteredStatusNotifierItems" type="as" access="read"/>
<property name="IsStatusNotifierHostRegistered" type="b" access="read"/>
<property name="ProtocolVersion" type="i" access="read"/>
<signal name="StatusNotifierItemRegistered"><arg type="s"/></signal>
</interface></node>"""

bus = Gio.bus_get_sync(Gio.BusType.SESSION)
icons = []


def on_call(connection, sender, path, interface, method, parameters, invocation):
    """A program offers its icon: by a path in itself, or by another name on the bus."""
    if method == "RegisterStatusNotifierItem":
        given = parameters.unpack()[0]
        icon = (sender, given) if given.startswith("/") else (given, "/StatusNotifierItem")
        icons.append(icon)
        signal = GLib.Variant("(s)", ("".join(icon),))
        connection.emit_signal(None, path, interface, "StatusNotifierItemRegistered", signal)
    invocation.return_value(None)


def on_property(connection, sender, path, interface, name):
    """What a program asks to learn whether anybody shows icons."""
    return {
        "RegisteredStatusNotifierItems": GLib.Variant("as", ["".join(icon) for icon in icons]),
        "IsStatusNotifierHostRegistered": GLib.Variant("b", True),
        "ProtocolVersion": GLib.Variant("i", 0),
    }[name]


def call(owner, path, interface, method, arguments):
    """Asks another program, and gives what it answers."""
    return bus.call_sync(owner, path, interface, method, arguments, None, Gio.DBusCallFlags.NONE, 5000).unpack()


def find(item, label):
    """The id of the menu item with this label at or below `item`, or None."""
    number, properties, children = item
    if properties.get("label") == label:
        return number
    return next((found for child in children if (found := find(child, label)) is not None), None)


def click(label):
    """Clicks a menu item of the newest icon."""
    owner, path = icons[-1]
    what = GLib.Variant("(ss)", ("org.kde.StatusNotifierItem", "Menu"))
    (menu,) = call(owner, path, "org.freedesktop.DBus.Properties", "Get", what)
    _, layout = call(owner, menu, "com.canonical.dbusmenu", "GetLayout", GLib.Variant("(iias)", (0, -1, ["label"])))
    item = find(layout, label)
    if item is None:
        raise LookupError(f"no menu item is called {label}: {layout}")
    event = GLib.Variant("(isvu)", (item, "clicked", GLib.Variant("s", ""), 0))
    call(owner, menu, "com.canonical.dbusmenu", "Event", event)


def on_input(channel, _condition):
    """One label a line."""
    label = sys.stdin.readline().strip()
    if not label:
        loop.quit()
        return False
    try:
        click(label)
        print("clicked", flush=True)
    except (GLib.Error, LookupError, IndexError) as error:
        print(f"failed: {error}", flush=True)
    return True


node = Gio.DBusNodeInfo.new_for_xml(INTERFACE)
bus.register_object("/StatusNotifierWatcher", node.interfaces[0], on_call, on_property, None)
GLib.io_add_watch(sys.stdin.fileno(), GLib.IO_IN | GLib.IO_HUP, on_input)
loop = GLib.MainLoop()
Gio.bus_own_name_on_connection(bus, NAME, Gio.BusNameOwnerFlags.NONE, lambda *_: print("ready", flush=True), None)
loop.run()
