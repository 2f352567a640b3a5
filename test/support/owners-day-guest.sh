#!/bin/sh
# Runs as root in the guest of test/full/owners-day.test.ts. Records what identifies the machine, and compares it later.
#
#   owners-day record       makes keys, an EFI variable and files, starts the load, and stores all facts
#   owners-day compare      prints one line: OK or DIFF with the names of the facts that differ, then the files
#   owners-day accept FACT  stores the present state of one fact
#   owners-day change       changes what a restore must bring back: TPM, EFI variable, disk
#   owners-day load         writes files with their checksums in their names until it is stopped
set -eu

DIR=/var/lib/owners-day
EFI_VARIABLE=/sys/firmware/efi/efivars/OwnersDay-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0
# A handle of the TPM for objects that stay.
SEALED=0x81010001
KEPT_FILES=200

# Prints the names of the facts.
facts() {
  echo uuid serial smbios machine-type cpu mac nics pci disks machine-id host-keys instance-id cloud-instances \
    tpm-keys tpm-secret efi-variable efi-boot hostname file-systems note
}

# print_fact NAME
print_fact() {
  case $1 in
    uuid) cat /sys/class/dmi/id/product_uuid ;;
    serial) cat /sys/class/dmi/id/product_serial ;;
    smbios) cd /sys/class/dmi/id && head bios_* chassis_type chassis_vendor product_name sys_vendor ;;
    machine-type) cat /sys/class/dmi/id/product_version /sys/class/dmi/id/chassis_version ;;
    cpu) nproc && sort -u /proc/cpuinfo | grep -E '^(model name|stepping|flags)' ;;
    mac) cat /sys/class/net/e*/address ;;
    nics) for nic in /sys/class/net/e*; do echo "${nic##*/} $(readlink -f "$nic/device")"; done ;;
    pci) list_pci ;;
    disks) list_disks ;;
    machine-id) cat /etc/machine-id ;;
    host-keys) for key in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf "$key"; done ;;
    instance-id) cat /var/lib/cloud/data/instance-id ;;
    cloud-instances) ls /var/lib/cloud/instances ;;
    # The primary key of the endorsement hierarchy is the same only if the TPM is.
    tpm-keys) tpm2_createprimary -Q -C e -G ecc -c /run/primary.ctx && tpm2_readpublic -c /run/primary.ctx ;;
    tpm-secret) tpm2_unseal -c "$SEALED" ;;
    efi-variable) sha256sum <"$EFI_VARIABLE" ;;
    # Boot entries of the firmware contain the addresses of devices.
    efi-boot) cd /sys/firmware/efi/efivars && sha256sum Boot0* BootOrder-* ;;
    hostname) hostname ;;
    file-systems) blkid -c /dev/null -s UUID -s LABEL | sort ;;
    note) cat "$DIR/note" ;;
  esac
}

# One line for each PCI device, controllers and ports included: address, class, id, subsystem, driver.
list_pci() {
  for device in /sys/bus/pci/devices/*; do
    driver=$(readlink "$device/driver" || echo none)
    echo "${device##*/} $(cd "$device" && cat class vendor device subsystem_vendor subsystem_device | tr '\n' ' ')${driver##*/}"
  done
}

list_disks() {
  for disk in /sys/block/[vs]d* /sys/block/sr*; do
    [ -e "$disk" ] || continue
    echo "${disk##*/} $(readlink -f "$disk/device") $(cat "$disk/size" "$disk/serial" 2>/dev/null | tr '\n' ' ')"
  done
}

record() {
  mkdir -p "$DIR/files" "$DIR/facts"
  head -c 16 /dev/urandom | sha256sum >"$DIR/note"
  printf '\007\000\000\000recorded' >"$EFI_VARIABLE"
  head -c 24 /dev/urandom | base64 >/run/secret
  tpm2_createprimary -Q -C o -G ecc -c /run/owner.ctx
  tpm2_create -Q -C /run/owner.ctx -i /run/secret -u /run/sealed.pub -r /run/sealed.priv
  tpm2_load -Q -C /run/owner.ctx -u /run/sealed.pub -r /run/sealed.priv -c /run/sealed.ctx
  tpm2_evictcontrol -Q -C o -c /run/sealed.ctx "$SEALED"
  for fact in $(facts); do print_fact "$fact" >"$DIR/facts/$fact"; done
  cat >/etc/systemd/system/owners-day.service <<UNIT
[Service]
ExecStart=$0 load
[Install]
WantedBy=multi-user.target
UNIT
  sync
  systemctl --quiet enable --now owners-day.service
}

compare() {
  differing=''
  for fact in $(facts); do
    print_fact "$fact" >/run/fact || true
    cmp -s "$DIR/facts/$fact" /run/fact && continue
    differing="$differing $fact"
    { echo "$fact:" && diff "$DIR/facts/$fact" /run/fact; } >&2 || true
  done
  cd "$DIR/files"
  # The load may remove a file at any time, so only files that still exist and differ count.
  bad=$(ls | sed -E 's/^([0-9]+)-([0-9a-f]+)$/\2  \1-\2/' | sha256sum -c --quiet --ignore-missing 2>/dev/null | wc -l)
  [ "$bad" = 0 ] || differing="$differing files"
  echo "$([ -z "$differing" ] && echo OK || echo "DIFF$differing") files=$(ls | wc -l) newest=$(newest_file)"
}

# The number of the newest file that is complete.
newest_file() { ls "$DIR/files" | sed 's/-.*//' | sort -n | tail -n 1; }

load() {
  number=$(newest_file)
  cd "$DIR/files"
  while :; do
    number=$((${number:-0} + 1))
    head -c 65536 /dev/urandom >../new
    # The name promises that the content is on the disk.
    sync ../new
    mv ../new "$number-$(sha256sum <../new | cut -d ' ' -f 1)"
    sync .
    rm -f -- "$((number - KEPT_FILES))"-*
    sleep 0.1
  done
}

accept() { print_fact "$1" >"$DIR/facts/$1"; }

change() {
  echo changed >"$DIR/note"
  tpm2_evictcontrol -Q -C o -c "$SEALED"
  chattr -i "$EFI_VARIABLE"
  printf '\007\000\000\000changed' >"$EFI_VARIABLE"
  sync
}

"$@"
