/**
 * The policy that protects the identity of a machine: firmware uuid and serial may be changed but not removed, by any
 * kind of write. VMs without them are allowed; the VM controller fills them in.
 */
import { KUBEVIRT_GROUP } from '#api/names.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { buildPolicy, matchUpdates } from '#operator/objects/policy.ts';

const FIRMWARE = ['spec', 'template', 'spec', 'domain', 'firmware'];

/** CEL: the string at the path of the object; '' if it or one of its parents is missing. */
function textAt(object: string, path: readonly string[]): string {
  const present = path.map((_, i) => `has(${[object, ...path.slice(0, i + 1)].join('.')})`);
  return `${present.join(' && ')} ? ${[object, ...path].join('.')} : ''`;
}

const refuseRemoval = (field: 'uuid' | 'serial') => ({
  expression: `variables.${field} == '' || (${textAt('object', [...FIRMWARE, field])}) != ''`,
  messageExpression: [
    `'the firmware ${field} of VirtualMachine "' + oldObject.metadata.name + '" cannot be removed: it is "' + `,
    `variables.${field} + '"; keep it in spec.template.spec.domain.firmware.${field}, or set another one there'`,
  ].join(''),
  reason: 'Invalid',
});

export const firmwarePolicy: readonly DesiredObject[] = buildPolicy('selfsame-firmware-identity', {
  resourceRules: [matchUpdates(KUBEVIRT_GROUP, 'virtualmachines')],
  variables: [
    { name: 'uuid', expression: textAt('oldObject', [...FIRMWARE, 'uuid']) },
    { name: 'serial', expression: textAt('oldObject', [...FIRMWARE, 'serial']) },
  ],
  validations: [refuseRemoval('uuid'), refuseRemoval('serial')],
});
