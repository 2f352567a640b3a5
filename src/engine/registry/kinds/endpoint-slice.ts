/** EndpointSlice: the endpoints of a Service. Written by the owners of the endpoints; used to resolve services. */
import { isIP } from 'node:net';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age, NONE_TEXT } from '#engine/registry/kinds/shared/columns.ts';
import { checkImmutableValue, checkPort } from '#engine/registry/kinds/shared/formats.ts';
import { objectReference } from '#engine/registry/kinds/shared/references.ts';
import { type FieldError, invalidValue, requiredValue, tooMany } from '#kube/field-error.ts';
import { bool, type Infer, int32, list, map, obj, oneOf, str } from '#kube/schema-dsl.ts';

export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';

const endpoint = obj(
  {
    addresses: list(str(), { set: true }),
    conditions: obj({ ready: bool(), serving: bool(), terminating: bool() }),
    deprecatedTopology: map(str()),
    hints: obj({
      forNodes: list(obj({ name: str() }, { required: ['name'] }), { atomic: true }),
      forZones: list(obj({ name: str() }, { required: ['name'] }), { atomic: true }),
    }),
    hostname: str(),
    nodeName: str(),
    targetRef: objectReference,
    zone: str(),
  },
  { required: ['addresses'] },
);

const endpointPort = obj({ appProtocol: str(), name: str(), port: int32(), protocol: str() }, { atomic: true });

const endpointSlice = obj(
  {
    addressType: oneOf(['FQDN', 'IPv4', 'IPv6']),
    endpoints: list(endpoint, { atomic: true }),
    ports: list(endpointPort, { atomic: true }),
  },
  { required: ['addressType', 'endpoints'] },
);

type Slice = Infer<typeof endpointSlice>;

const MAX_ENDPOINTS = 1000;
const MAX_ADDRESSES = 100;
const MAX_SHOWN = 3;

export const endpointSlices = defineKind({
  group: 'discovery.k8s.io',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
  generation: true,
  schema: endpointSlice,
  columns: [
    { name: 'AddressType', value: ({ addressType }) => addressType },
    { name: 'Ports', value: ({ ports = [] }) => formatList(ports.map(({ port }) => String(port ?? '*'))) },
    {
      name: 'Endpoints',
      value: ({ endpoints }) => formatList((endpoints ?? []).flatMap(({ addresses }) => addresses)),
    },
    age,
  ],
  defaults({ ports }) {
    for (const port of ports ?? []) {
      port.name ??= '';
      port.protocol ??= 'TCP';
    }
  },
  validate: checkSlice,
  validateUpdate: ({ addressType }, old) => checkImmutableValue('addressType', addressType, old.addressType),
});

/** Formats values like kubectl, which truncates long lists. */
function formatList(values: readonly string[]): string {
  if (values.length === 0) return NONE_TEXT;
  const more = values.length - MAX_SHOWN;
  return values.slice(0, MAX_SHOWN).join(',') + (more > 0 ? ` + ${more} more...` : '');
}

/** Loopback addresses, which a cluster rejects, are allowed: on one machine they are all there is. */
function checkSlice({ addressType, endpoints, ports = [] }: Slice): FieldError[] {
  const errors: FieldError[] = [];
  if (endpoints.length > MAX_ENDPOINTS) errors.push(tooMany('endpoints', endpoints.length, MAX_ENDPOINTS));
  for (const [i, { addresses }] of endpoints.entries()) {
    const field = `endpoints[${i}].addresses`;
    if (addresses.length === 0) errors.push(requiredValue(field, 'must contain at least 1 address'));
    if (addresses.length > MAX_ADDRESSES) errors.push(tooMany(field, addresses.length, MAX_ADDRESSES));
    for (const [j, address] of addresses.entries()) {
      if (!isOfType(address, addressType)) {
        const what = addressType === 'FQDN' ? 'a name' : `an ${addressType} address`;
        errors.push(invalidValue(`${field}[${j}]`, address, `must be ${what}`));
      }
    }
  }
  for (const [i, { port }] of ports.entries()) {
    if (port !== undefined) errors.push(...checkPort(`ports[${i}].port`, port));
  }
  return errors;
}

function isOfType(address: string, type: Slice['addressType']): boolean {
  const family = isIP(address);
  return type === 'FQDN' ? family === 0 : family === (type === 'IPv4' ? 4 : 6);
}
