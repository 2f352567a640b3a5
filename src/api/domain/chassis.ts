import { obj, str, type Infer } from '#kube/schema-dsl.ts';

/** A line that firmware shows: printable, and not long. */
const line = str({ maxLength: 256, pattern: '^[ -~]*$' });

/** What the guest sees in SMBIOS of the case that it is in. */
export const chassis = obj({ manufacturer: line, version: line, serial: line, asset: line, sku: line });

/** What guests see in SMBIOS of their maker; set for all of them by the KubeVirt object. */
export const smbios = obj({ manufacturer: line, product: line, version: line, sku: line, family: line });

export type Chassis = Infer<typeof chassis>;
export type Smbios = Infer<typeof smbios>;
