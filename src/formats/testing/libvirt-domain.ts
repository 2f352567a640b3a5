/** A made-up domain in the form of `virsh dumpxml`. */

export interface DomainParts {
  readonly machine?: string;
  readonly os?: string;
  readonly devices?: string;
  readonly extra?: string;
}

export function libvirtDomain({
  machine = 'pc-q35-6.2',
  os = '',
  devices = DEVICES,
  extra = '',
}: DomainParts = {}): string {
  return `<domain type='kvm' id='3'>
  <name>Web 01</name>
  <uuid>7c6d3f1a-8a3b-4a57-9a31-6d8c54a60001</uuid>
  <memory unit='KiB'>4194304</memory>
  <currentMemory unit='KiB'>2097152</currentMemory>
  <vcpu placement='static'>4</vcpu>
  <sysinfo type='smbios'><system><entry name='manufacturer'>ACME</entry><entry name='serial'>SN 42</entry></system></sysinfo>
  <os firmware='efi'>
    <type arch='x86_64' machine='${machine}'>hvm</type>
    <loader readonly='yes' secure='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE.secboot.fd</loader>
    <nvram>/var/lib/libvirt/qemu/nvram/web_VARS.fd</nvram>${os}
  </os>
  <cpu mode='host-passthrough' check='none'><topology sockets='1' dies='1' cores='2' threads='2'/></cpu>
  <features><acpi/></features>
  <clock offset='utc'/>${extra}
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    ${devices}
  </devices>
</domain>`;
}

const pci = (bus: string, slot: string, fn = '0x0', more = '') =>
  `<address type='pci' domain='0x0000' bus='${bus}' slot='${slot}' function='${fn}'${more}/>`;

export const DEVICES = `
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='none'/>
      <source file='/var/lib/libvirt/images/web.qcow2' index='2'/>
      <backingStore/>
      <target dev='vda' bus='virtio'/>
      <serial>WEB1</serial>
      <boot order='1'/>
      <alias name='virtio-disk0'/>
      ${pci('0x04', '0x00')}
    </disk>
    <disk type='block' device='disk'>
      <driver name='qemu' type='raw'/>
      <source dev='/dev/vg/data'/>
      <target dev='sda' bus='scsi'/>
      <readonly/>
      <iotune><read_iops_sec>100</read_iops_sec></iotune>
      <alias name='ua-disk-data'/>
      <address type='drive' controller='0' bus='0' target='0' unit='0'/>
    </disk>
    <disk type='file' device='cdrom'>
      <driver name='qemu' type='raw'/>
      <target dev='sdb' bus='sata'/>
      <readonly/>
      <address type='drive' controller='0' bus='0' target='0' unit='0'/>
    </disk>
    <controller type='pci' index='0' model='pcie-root'><alias name='pcie.0'/></controller>
    <controller type='pci' index='1' model='pcie-root-port'><model name='pcie-root-port'/><target chassis='1' port='0x10'/>${pci('0x00', '0x02', '0x0', " multifunction='on'")}</controller>
    <controller type='pci' index='2' model='pcie-root-port'>${pci('0x00', '0x02', '0x1')}</controller>
    <controller type='scsi' index='0' model='virtio-scsi'>${pci('0x03', '0x00')}</controller>
    <controller type='usb' index='0' model='qemu-xhci' ports='15'>${pci('0x02', '0x00')}</controller>
    <interface type='bridge'>
      <mac address='52:54:00:AA:BB:01'/><source bridge='br0'/><target dev='vnet0'/><model type='virtio'/><boot order='2'/>
      <alias name='ua-2e1a5a5e-0000-4000-8000-000000000001'/>${pci('0x01', '0x00')}
    </interface>
    <interface type='user'><mac address='52:54:00:aa:bb:02'/><model type='vmxnet3'/>${pci('0x07', '0x01')}</interface>
    <serial type='pty'><target type='isa-serial' port='0'/></serial>
    <console type='pty'><target type='serial' port='0'/></console>
    <channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/><address type='virtio-serial' controller='0' bus='0' port='1'/></channel>
    <input type='tablet' bus='usb'><address type='usb' bus='0' port='1'/></input>
    <input type='mouse' bus='ps2'/>
    <tpm model='tpm-crb'><backend type='emulator' version='2.0'/></tpm>
    <graphics type='vnc' port='5900'/>
    <video><model type='virtio' heads='1' primary='yes'/>${pci('0x00', '0x01')}</video>
    <memballoon model='virtio'>${pci('0x05', '0x00')}</memballoon>
    <rng model='virtio'><backend model='random'>/dev/urandom</backend>${pci('0x06', '0x00')}</rng>
    <hostdev mode='subsystem' type='pci' managed='yes'>${pci('0x08', '0x00')}</hostdev>
    <panic model='isa'/>`;
