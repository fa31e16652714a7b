#!/bin/sh
# Makes the root folder of the image: image-root.sh EXECUTABLE FOLDER. What is in it, is in the image.
set -eu
# A user without rights runs it, whoever makes it.
umask 022
executable=$1
root=$2

mkdir -p "$root/usr/local/bin" "$root/etc"
install -m 755 "$executable" "$root/usr/local/bin/postern"

# What the executable is linked with, and what LMDB's library inside it needs besides.
machine_libraries=$(dirname "$(ldd "$executable" | sed -n 's/.*libc\.so\.6 => \([^ ]*\).*/\1/p')")
for library in \
  $(ldd "$executable" | grep -o '/[^ ]*') \
  "$machine_libraries/libstdc++.so.6" "$machine_libraries/libgcc_s.so.1"; do
  # By the path that it is looked for, the file behind it.
  found=$library
  [ -e "$found" ] || found=/usr$library
  mkdir -p "$root$(dirname "$library")"
  cp -L "$found" "$root$library"
done

echo 'postern:x:65532:65532::/data:/nonexistent' >"$root/etc/passwd"
echo 'postern:x:65532:' >"$root/etc/group"
# Names are looked up in the files that the container engine brings, then by DNS.
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
