#!/bin/sh
# Draws every icon file from the two SVGs. Needs rsvg-convert (librsvg2-bin), png2icns (icnsutils) and
# convert (imagemagick); run it after changing an SVG and commit what it makes.
set -eu
cd "$(dirname "$0")"

for size in 16 32 48 128 256 512 1024; do
    rsvg-convert --width $size --height $size app.svg --output app-$size.png
done
# These names and sizes are what Tauri's bundler and its default window icon look for.
cp app-32.png 32x32.png
cp app-128.png 128x128.png
cp app-256.png 128x128@2x.png
cp app-512.png icon.png
png2icns icon.icns app-16.png app-32.png app-128.png app-256.png app-512.png app-1024.png
convert app-16.png app-32.png app-48.png app-256.png icon.ico
rm app-*.png

# The menu bar is 18 points high here; the second size is for Retina screens.
rsvg-convert --width 18 --height 18 tray.svg --output tray.png
rsvg-convert --width 36 --height 36 tray.svg --output tray@2x.png
