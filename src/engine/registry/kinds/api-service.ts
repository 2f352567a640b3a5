/** APIService: the server of an API group and version. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { conditionStatus, conditionTransition } from '#engine/registry/kinds/meta/condition.ts';
import { checkName } from '#engine/registry/kinds/shared/formats.ts';
import { checkServiceReference, servicePort } from '#engine/registry/kinds/shared/service-reference.ts';
import { findCondition } from '#kube/conditions.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { bool, bytes, type Infer, int32, list, overrideOptions, str } from '#kube/schema-dsl.ts';

const serviceReference = apiType('apiregistration.v1.ServiceReference', 'A reference to a service.', {
  namespace: optional(1, str(), 'Namespace of the service.'),
  name: optional(2, str(), 'Name of the service.'),
  port: servicePort(3),
});

const apiServiceSpec = apiType(
  'apiregistration.v1.APIServiceSpec',
  'The group and version that a server serves, and how to reach it.',
  {
    service: pointer(1, serviceReference, 'Service that serves the API. Unset means that this server serves it.'),
    group: optional(2, str(), 'Name of the API group.'),
    version: optional(3, str(), 'Name of the API version.'),
    insecureSkipTLSVerify: optional(4, bool(), 'Whether verification of the server certificate is disabled.'),
    caBundle: optional(5, bytes(), "PEM encoded CA bundle that verifies the server's certificate."),
    groupPriorityMinimum: required(
      7,
      int32({ default: 0 }),
      'Minimum priority of the group. Groups with higher numbers come first.',
    ),
    versionPriority: required(
      8,
      int32({ default: 0 }),
      'Priority of the version in its group. Versions with higher numbers come first.',
    ),
  },
);

const apiServiceCondition = apiType('apiregistration.v1.APIServiceCondition', 'A condition of an APIService.', {
  ...conditionStatus,
  ...conditionTransition(3),
});

const apiServiceStatus = apiType('apiregistration.v1.APIServiceStatus', 'The availability of an API server.', {
  conditions: optional(1, list(apiServiceCondition, { mergeKey: 'type' }), 'Current service state of the APIService.'),
});

const apiService = apiType('apiregistration.v1.APIService', 'A server for one API group and version.', {
  spec: required(2, overrideOptions(apiServiceSpec, { default: {} }), 'Group, version and server.'),
  status: optional(
    3,
    overrideOptions(apiServiceStatus, { default: {} }),
    'Current availability of the server. Populated by the system. Read-only.',
  ),
});

type Spec = Infer<typeof apiServiceSpec>;
type Status = Infer<typeof apiServiceStatus>;

export const apiServices = defineKind({
  group: 'apiregistration.k8s.io',
  kind: 'APIService',
  plural: 'apiservices',
  namespaced: false,
  needsRevision: true,
  categories: ['api-extensions'],
  nameRule: 'path-segment',
  schema: apiService,
  columns: [
    {
      name: 'Service',
      description: 'Server of the API: Local or a service.',
      value: ({ spec: { service } }) =>
        service === undefined ? 'Local' : `${service.namespace ?? ''}/${service.name ?? ''}`,
    },
    {
      name: 'Available',
      description: 'Whether the service is available.',
      value: ({ status }) => availability(status ?? {}),
    },
    age,
  ],
  status: true,
  prepareForCreate(object) {
    const { spec, metadata } = object;
    if (!isRecord(spec) || spec.service !== undefined) return;
    // A local API is available from the start.
    object.status = {
      conditions: [
        {
          type: 'Available',
          status: 'True',
          lastTransitionTime: metadata.creationTimestamp,
          reason: 'Local',
          message: 'Local APIServices are always available',
        },
      ],
    };
  },
  validate: ({ metadata, spec }) => checkApiService(metadata.name ?? '', spec),
});

function availability({ conditions }: Status): string {
  const available = findCondition(conditions, 'Available');
  if (available === undefined) return 'Unknown';
  return available.status === 'True' || !available.reason
    ? available.status
    : `${available.status} (${available.reason})`;
}

const GROUP_PRIORITY_MAX = 20_000;
const VERSION_PRIORITY_MAX = 1000;

function checkApiService(name: string, spec: Spec): FieldError[] {
  const { group = '', version = '', groupPriorityMinimum, versionPriority, service } = spec;
  const errors: FieldError[] = [];
  const wanted = `${version}.${group}`;
  if (name !== wanted) {
    const text = `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(wanted)}`;
    errors.push(invalidValue('metadata.name', name, text));
  }
  if (group === '' && version !== 'v1') {
    errors.push(requiredValue('spec.group', 'only v1 may have an empty group and it better be legacy kube'));
  }
  if (group !== '') errors.push(...checkName('spec.group', group, 'subdomain'));
  errors.push(...checkName('spec.version', version, 'label1035'));
  if (groupPriorityMinimum <= 0 || groupPriorityMinimum > GROUP_PRIORITY_MAX) {
    const text = `must be positive and less than ${GROUP_PRIORITY_MAX}`;
    errors.push(invalidValue('spec.groupPriorityMinimum', groupPriorityMinimum, text));
  }
  if (versionPriority <= 0 || versionPriority > VERSION_PRIORITY_MAX) {
    const text = `must be positive and less than ${VERSION_PRIORITY_MAX}`;
    errors.push(invalidValue('spec.versionPriority', versionPriority, text));
  }
  return [...errors, ...(service === undefined ? checkLocal(spec) : checkService(spec, service))];
}

function checkLocal({ caBundle = '', insecureSkipTLSVerify }: Spec): FieldError[] {
  const errors: FieldError[] = [];
  if (caBundle !== '') {
    const size = `${Buffer.byteLength(caBundle, 'base64')} bytes`;
    errors.push(invalidValue('spec.caBundle', size, 'local APIServices may not have a caBundle'));
  }
  if (insecureSkipTLSVerify === true) {
    errors.push(
      invalidValue('spec.insecureSkipTLSVerify', true, 'local APIServices may not have insecureSkipTLSVerify'),
    );
  }
  return errors;
}

function checkService(
  { caBundle = '', insecureSkipTLSVerify }: Spec,
  service: NonNullable<Spec['service']>,
): FieldError[] {
  const errors = checkServiceReference('spec.service', service);
  if (insecureSkipTLSVerify === true && caBundle !== '') {
    errors.push(invalidValue('spec.insecureSkipTLSVerify', true, 'may not be true if caBundle is present'));
  }
  return errors;
}
