/**
 * EndpointSlice: the endpoints of a Service. Written by controllers/endpoint-slice/ for Services with a selector, otherwise
 * by the owners of the endpoints.
 */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { isIP } from 'node:net';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age, NONE_TEXT } from '#engine/registry/kinds/shared/columns.ts';
import { checkImmutableValue, checkPort } from '#engine/registry/kinds/shared/formats.ts';
import { objectReference } from '#engine/registry/kinds/core/references.ts';
import { type FieldError, invalidValue, requiredValue, tooMany } from '#kube/field-error.ts';
import { bool, type Infer, int32, list, map, oneOf, str } from '#kube/schema-dsl.ts';

const endpoint = apiType('discovery.v1.Endpoint', 'A logical backend of a service.', {
  addresses: required(1, list(str(), { set: true }), 'Addresses of the endpoint. Clients may use any of them.'),
  conditions: optional(
    2,
    apiType('discovery.v1.EndpointConditions', 'The current status of an endpoint.', {
      ready: pointer(1, bool(), 'Whether the endpoint can receive traffic. Unset means true.'),
      serving: pointer(2, bool(), 'Like ready, but independent of terminating.'),
      terminating: pointer(3, bool(), 'Whether the endpoint is terminating.'),
    }),
    'Current status of the endpoint.',
  ),
  hostname: pointer(3, str(), 'Hostname of the endpoint.'),
  targetRef: pointer(4, objectReference, 'Object that the endpoint represents.'),
  deprecatedTopology: optional(5, map(str()), 'Deprecated.'),
  nodeName: pointer(6, str(), 'Name of the node that hosts the endpoint.'),
  zone: pointer(7, str(), 'Name of the zone of the endpoint.'),
  hints: pointer(
    8,
    apiType('discovery.v1.EndpointHints', 'How an endpoint should be consumed.', {
      forZones: optional(
        1,
        list(
          apiType('discovery.v1.ForZone', 'A zone whose clients should use an endpoint.', {
            name: required(1, str(), 'Name of the zone.'),
          }),
          { atomic: true },
        ),
        'Zones whose clients should use the endpoint.',
      ),
      forNodes: optional(
        2,
        list(
          apiType('discovery.v1.ForNode', 'A node whose clients should use an endpoint.', {
            name: required(1, str(), 'Name of the node.'),
          }),
          { atomic: true },
        ),
        'Nodes whose clients should use the endpoint.',
      ),
    }),
    'How the endpoint should be consumed.',
  ),
});

const endpointPort = apiType(
  'discovery.v1.EndpointPort',
  { description: 'A port of the endpoints of a slice.', atomic: true },
  {
    name: pointer(1, str(), 'Name of the port, which matches the name of the service port.'),
    protocol: pointer(2, str(), 'IP protocol of the port: TCP, UDP or SCTP.'),
    port: pointer(3, int32(), 'Port number.'),
    appProtocol: pointer(4, str(), 'Application protocol of the port.'),
  },
);

export const endpointSlice = apiType('discovery.v1.EndpointSlice', 'A subset of the endpoints of a service.', {
  addressType: required(4, oneOf(['FQDN', 'IPv4', 'IPv6']), 'Type of the addresses: IPv4, IPv6 or FQDN.'),
  endpoints: required(2, list(endpoint, { atomic: true }), 'Endpoints of the slice.'),
  ports: optional(3, list(endpointPort, { atomic: true }), 'Network ports that each endpoint exposes.', {
    omitEmpty: false,
  }),
});

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
