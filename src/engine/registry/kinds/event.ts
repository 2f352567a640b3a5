/** Event, in its core/v1 form. */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { formatAge } from '#engine/registry/kinds/shared/columns.ts';
import { checkQualifiedName } from '#engine/registry/kinds/shared/formats.ts';
import { objectReference } from '#engine/registry/kinds/shared/references.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';
import type { KubeObject } from '#kube/meta.ts';
import { type Infer, int32, microTime, overrideOptions, obj, str, time } from '#kube/schema-dsl.ts';

const eventSeries = obj({
  count: int32(),
  lastObservedTime: microTime(),
});

const eventSource = obj({
  component: str(),
  host: str(),
});

const event = obj(
  {
    action: str(),
    count: int32(),
    eventTime: microTime(),
    firstTimestamp: time(),
    involvedObject: overrideOptions(objectReference, { default: {} }),
    lastTimestamp: time(),
    message: str(),
    reason: str(),
    related: objectReference,
    reportingComponent: str({ default: '' }),
    reportingInstance: str({ default: '' }),
    series: eventSeries,
    source: overrideOptions(eventSource, { default: {} }),
    type: str(),
  },
  { required: ['involvedObject'] },
);

type Event = KubeObject & Infer<typeof event>;

export const events = defineKind({
  kind: 'Event',
  plural: 'events',
  namespaced: true,
  shortNames: ['ev'],
  // Event names start with the name of an object of any kind.
  nameRule: 'path-segment',
  schema: event,
  columns: [
    { name: 'Last Seen', value: lastSeen },
    { name: 'Type', value: ({ type }) => type ?? '' },
    { name: 'Reason', value: ({ reason }) => reason ?? '' },
    {
      name: 'Object',
      description: 'Object that the event is about.',
      value: ({ involvedObject: { kind = '', name } }) => (name ? `${kind.toLowerCase()}/${name}` : kind.toLowerCase()),
    },
    { name: 'Subobject', priority: 1, value: ({ involvedObject }) => involvedObject.fieldPath ?? '' },
    { name: 'Source', priority: 1, value: sourceText },
    { name: 'Message', value: ({ message = '' }) => message.trim() },
    { name: 'First Seen', priority: 1, value: firstSeen },
    { name: 'Count', priority: 1, value: ({ series, count }) => series?.count ?? (count || 1) },
    { name: 'Name', format: 'name', priority: 1, value: ({ metadata }) => metadata.name },
  ],
  selectableFields: {
    'involvedObject.kind': ({ involvedObject }) => involvedObject.kind ?? '',
    'involvedObject.namespace': ({ involvedObject }) => involvedObject.namespace ?? '',
    'involvedObject.name': ({ involvedObject }) => involvedObject.name ?? '',
    'involvedObject.uid': ({ involvedObject }) => involvedObject.uid ?? '',
    'involvedObject.apiVersion': ({ involvedObject }) => involvedObject.apiVersion ?? '',
    'involvedObject.resourceVersion': ({ involvedObject }) => involvedObject.resourceVersion ?? '',
    'involvedObject.fieldPath': ({ involvedObject }) => involvedObject.fieldPath ?? '',
    reason: ({ reason }) => reason ?? '',
    reportingComponent: ({ reportingComponent }) => reportingComponent ?? '',
    source: ({ source, reportingComponent }) => source?.component || (reportingComponent ?? ''),
    type: ({ type }) => type ?? '',
  },
  validate: checkEvent,
});

function firstSeen({ firstTimestamp, eventTime }: Event, now: number): string {
  return formatAge(firstTimestamp ?? eventTime, now);
}

function lastSeen(object: Event, now: number): string {
  const { series, lastTimestamp } = object;
  if (series !== undefined) return formatAge(series.lastObservedTime, now);
  return lastTimestamp === undefined ? firstSeen(object, now) : formatAge(lastTimestamp, now);
}

function sourceText({ source, reportingComponent = '', reportingInstance = '' }: Event): string {
  const component = source?.component || reportingComponent;
  const instance = source?.host || reportingInstance;
  return instance === '' ? component : `${component}, ${instance}`;
}

const MISMATCH = 'does not match event.namespace';
const SHORT_MAX = 128;
const MESSAGE_MAX = 1024;

/** Old events carry counts and timestamps, new ones an eventTime; new ones have stricter rules. */
function checkEvent(object: Event): FieldError[] {
  const { metadata, involvedObject, eventTime } = object;
  const own = metadata.namespace ?? '';
  const about = involvedObject.namespace ?? '';
  const homes = eventTime === undefined ? ['', 'default'] : ['default', 'kube-system'];
  const astray = about === '' ? !homes.includes(own) : eventTime === undefined && about !== own;
  const errors = astray ? [invalidValue('involvedObject.namespace', about, MISMATCH)] : [];
  return eventTime === undefined ? errors : [...errors, ...checkNewEvent(object)];
}

function checkNewEvent(object: Event): FieldError[] {
  const { reportingComponent = '', reportingInstance, action, reason, message = '' } = object;
  const errors: FieldError[] = [];
  if (reportingComponent === '') errors.push(requiredValue('reportingComponent'));
  errors.push(...checkQualifiedName('reportingComponent', reportingComponent));
  for (const [field, text = ''] of Object.entries({ reportingInstance, action, reason })) {
    if (text === '') errors.push(requiredValue(field));
    if (text.length > SHORT_MAX) errors.push(invalidValue(field, '', `can have at most ${SHORT_MAX} characters`));
  }
  if (message.length > MESSAGE_MAX) {
    errors.push(invalidValue('message', '', `can have at most ${MESSAGE_MAX} characters`));
  }
  return errors;
}
