/** APIService: the server of an API group and version. */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { plainCondition } from '#engine/registry/kinds/shared/condition.ts';
import { checkName } from '#engine/registry/kinds/shared/formats.ts';
import { checkServiceReference, serviceReferenceFields } from '#engine/registry/kinds/shared/service-reference.ts';
import { findCondition } from '#kube/conditions.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { bool, bytes, type Infer, int32, list, overrideOptions, obj, str } from '#kube/schema-dsl.ts';

const apiServiceSpec = obj(
  {
    caBundle: bytes(),
    group: str(),
    groupPriorityMinimum: int32({ default: 0 }),
    insecureSkipTLSVerify: bool(),
    service: obj(serviceReferenceFields),
    version: str(),
    versionPriority: int32({ default: 0 }),
  },
  { required: ['groupPriorityMinimum', 'versionPriority'] },
);

const apiServiceStatus = obj({
  conditions: list(plainCondition, { mergeKey: 'type' }),
});

const apiService = obj(
  {
    spec: overrideOptions(apiServiceSpec, { default: {} }),
    status: overrideOptions(apiServiceStatus, { default: {} }),
  },
  { required: ['spec'] },
);

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
