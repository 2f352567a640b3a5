/** Commands of KubeVirt's virtctl that we do not have, by the words after the program, and what to do instead. */
export const NOT_HERE: ReadonlyMap<string, string> = new Map([
  ['adm', "KubeVirt's log levels are not ours; use the flag --log-level of selfsame"],
  ['create clone', 'there are no clones; take a snapshot and restore it into another VM'],
  ['create instancetype', 'there are no instance types; write cpu and memory into the VM'],
  ['create preference', 'there are no preferences; write them into the VM'],
  ['credentials', 'keys and passwords come to the guest by cloud-init; see virtctl create vm --ssh-key'],
  ['evacuate-cancel', 'cancel the migration with virtctl migrate-cancel'],
  ['expose', 'there are no Services here that reach guests'],
  ['guestfs', 'there are no containers here; export the disk with virtctl export ovf'],
  ['memory-dump', 'memory is not dumped'],
  ['objectgraph', 'use kubectl describe'],
  ['permitted-devices', 'devices of nodes are not handed to guests'],
  ['template', 'there are no templates; see virtctl create vm'],
  ['usbredir', 'USB devices are not handed to guests'],
  ['vmexport', 'use virtctl export ovf, or virtctl export libvirt'],
]);
