/** Unsupported commands of KubeVirt's virtctl, by the words after the program, with the alternative. */
export const UNSUPPORTED_COMMANDS: ReadonlyMap<string, string> = new Map([
  ['adm', 'log levels are set with the flag --log-level of selfsame'],
  ['create clone', 'VirtualMachineClones are not supported; use virtctl clone'],
  ['create instancetype', 'instance types are not supported; set cpu and memory in the VM'],
  ['create preference', 'preferences are not supported; set the fields in the VM'],
  ['credentials', 'keys and passwords are set through cloud-init; see virtctl create vm --ssh-key'],
  ['evacuate-cancel', 'cancel the migration with virtctl migrate-cancel'],
  ['guestfs', 'containers are not supported; export the disk with virtctl export ovf'],
  ['memory-dump', 'memory dumps are not supported'],
  ['objectgraph', 'use kubectl describe'],
  ['permitted-devices', 'host devices cannot be passed through to guests'],
  ['template', 'templates are not supported; see virtctl create vm'],
  ['usbredir', 'USB devices cannot be passed through to guests'],
  ['vmexport', 'use virtctl export ovf, or virtctl export libvirt'],
]);
