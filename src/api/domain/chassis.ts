import { obj, str, type Infer } from '#kube/schema-dsl.ts';

/** An SMBIOS string: printable ASCII of limited length. */
const line = str({ maxLength: 256, pattern: '^[ -~]*$' });

/** SMBIOS strings of the chassis. */
export const chassis = obj({ manufacturer: line, version: line, serial: line, asset: line, sku: line });

/** SMBIOS strings of the system, set for all guests by the KubeVirt object. */
export const smbios = obj({ manufacturer: line, product: line, version: line, sku: line, family: line });

export type Chassis = Infer<typeof chassis>;
export type Smbios = Infer<typeof smbios>;
