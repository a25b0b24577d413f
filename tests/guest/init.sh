#!/bin/sh
# The guest's first process. Over the host's files, which it cannot change, it lays a file system in memory; then it
# does what the second serial line asks for: "NUMBER SECONDS" runs /mnt/NUMBER/command for at most so long and answers
# "ended NUMBER". /mnt is a folder of the host that both sides write to (guest.py).
/bin/busybox mkdir -p /sbin /usr/bin /usr/sbin
/bin/busybox --install -s
fail() { echo "guest: $*"; poweroff -f; }

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in /modules/*.ko; do insmod "$module" || fail "cannot load $module"; done

over9p() { mount -t 9p -o "trans=virtio,version=9p2000.L,msize=524288,$3" "$1" "$2" || fail "cannot mount $1"; }
over9p host /host cache=loose,ro
mount -t tmpfs -o size=50% over /over
mkdir /over/changed /over/work
mount -t overlay -o lowerdir=/host,upperdir=/over/changed,workdir=/over/work root /root || fail "cannot overlay"
cd /root || fail "no root"
mount -t proc proc proc
mount -t sysfs sys sys
mount -t devtmpfs dev dev
mkdir -p dev/shm dev/pts tmp mnt
mount -t tmpfs -o mode=1777 shm dev/shm
mount -t devpts pts dev/pts
over9p jobs mnt cache=none
ip link set lo up
hostname guest
printf '127.0.0.1 localhost guest\n' > etc/hosts

line=/dev/ttyS1
stty raw -echo < $line
exec 3<> $line
echo "ready" >&3
while read -r number seconds <&3; do
  chroot . /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
    /usr/bin/timeout -k 5 "$seconds" /bin/bash "/mnt/$number/command" \
    < /dev/null > "mnt/$number/out" 2> "mnt/$number/err" 3<&-
  echo $? > "mnt/$number/status"
  kill -9 -1 # whatever the command has left behind; spares only this process
  rm -rf dev/shm/*
  echo "ended $number" >&3
done
poweroff -f
