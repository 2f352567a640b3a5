/** Finds the sections of an OVF, in oVirt's form and in that of the standard, and the product that wrote it. */
import { findDuplicates, type Findings } from '#formats/findings.ts';
import { OVF, OWN, XSI } from '#formats/ovf/vocabulary.ts';
import { attributeOf, childNamed, childrenNamed, type XmlElement } from '#lib/xml/xml.ts';
import { quoteText } from '#lib/text/quote-text.ts';

export interface Envelope {
  readonly references?: XmlElement;
  readonly disks?: XmlElement;
  /** `Content` in oVirt's form, `VirtualSystem` in the standard. */
  readonly system: XmlElement;
  readonly operatingSystem?: XmlElement;
  readonly hardware?: XmlElement;
  readonly product: 'Selfsame' | 'oVirt' | undefined;
  /** The version of the product: 3.0.0.0. */
  readonly version?: string;
  /** Elements of the system by their name in lower case without `_`, because oVirt used several spellings. */
  readonly settings: ReadonlyMap<string, XmlElement>;
}

const IGNORED_SECTIONS = new Set(['NetworkSection', 'Info', 'AnnotationSection', 'DeploymentOptionSection', 'Strings']);
/** The settings of oVirt that are read, or that do not affect the machine. */
const IMPORTED_SETTINGS = new Set([
  ...['name', 'section', 'info', 'operatingsystemsection', 'virtualhardwaresection', 'defaultbootsequence', 'biostype'],
  ...['customemulatedmachine', 'customcpuname', 'serialnumberpolicy', 'customserialnumber', 'note'],
  ...['clustercompatibilityversion', 'generation', 'creationdate', 'exportdate', 'origin', 'vmtype'],
]);

/** Elements of our own namespace. */
const OWN_SETTINGS = new Set(['state', 'cloudinit', 'label']);

const SINGLE_SETTINGS = new Set([
  'name',
  'defaultbootsequence',
  'biostype',
  'customemulatedmachine',
  'customserialnumber',
]);

/** Returns undefined if there is no system to read; the findings contain the error. */
export function parseEnvelope(root: XmlElement, findings: Findings): Envelope | undefined {
  if (root.name !== 'Envelope' || root.namespace.replace(/\/$/, '') !== OVF) {
    findings.addError(`the root element is ${quoteText(root.name)}; expected an Envelope of OVF 1`);
    return undefined;
  }
  const sections = new Map<string, XmlElement>();
  const systems: XmlElement[] = [];
  for (const child of root.children) {
    const kind = sectionKind(child);
    if (kind === 'VirtualSystem') systems.push(child);
    else if (kind === 'VirtualSystemCollection')
      findings.addError('it contains a collection of machines; expected one');
    else if (sections.has(kind)) findings.addError(`${kind} appears twice`);
    else sections.set(kind, child);
    if (!['VirtualSystem', 'References', 'DiskSection'].includes(kind) && !IGNORED_SECTIONS.has(kind)) {
      findings.addNote(`${kind} is not imported`);
    }
  }
  const [system] = systems;
  if (system === undefined || systems.length > 1) {
    findings.addError(`it contains ${systems.length} machines; expected one`);
    return undefined;
  }
  const inner = innerSections(system, findings);
  const settings = new Map(system.children.map((child) => [settingKey(child.name), child]));
  const isOwn = attributeOf(root, 'version', OWN) !== undefined;
  const isOvirt =
    isOwn ||
    root.namespace !== OVF ||
    settings.has('defaultbootsequence') ||
    isFromEngine(inner.get('VirtualHardwareSection'));
  for (const word of findDuplicates(system.children.map(({ name }) => settingKey(name)))) {
    if (SINGLE_SETTINGS.has(word)) findings.addError(`${settings.get(word)?.name} appears twice`);
  }
  noteIgnoredSettings(settings, findings);
  const version =
    attributeOf(root, 'version', isOwn ? OWN : root.namespace) ??
    settings.get('clustercompatibilityversion')?.text.trim();
  return {
    references: sections.get('References'),
    disks: sections.get('DiskSection'),
    system,
    operatingSystem: inner.get('OperatingSystemSection'),
    hardware: inner.get('VirtualHardwareSection'),
    product: isOwn ? 'Selfsame' : isOvirt ? 'oVirt' : undefined,
    ...(version !== undefined && version !== '' && { version }),
    settings,
  };
}

function innerSections(system: XmlElement, findings: Findings): Map<string, XmlElement> {
  const inner = new Map<string, XmlElement>();
  for (const child of system.children) {
    const kind = sectionKind(child);
    if (!kind.endsWith('Section')) continue;
    if (inner.has(kind)) findings.addError(`${kind} appears twice`);
    else inner.set(kind, child);
    const isRead = kind === 'OperatingSystemSection' || kind === 'VirtualHardwareSection';
    if (!isRead && !IGNORED_SECTIONS.has(kind)) findings.addNote(`${kind} is not imported`);
  }
  if (!inner.has('VirtualHardwareSection')) findings.addError('there is no VirtualHardwareSection');
  return inner;
}

/** Treats `<Section xsi:type="ovf:DiskSection_Type">` like `<DiskSection>`, and `Content` like `VirtualSystem`. */
function sectionKind(element: XmlElement): string {
  const type = attributeOf(element, 'type', XSI);
  if (type === undefined || (element.name !== 'Section' && element.name !== 'Content')) return element.name;
  return (type.split(':').at(-1) ?? '').replace(/_Type$/, '');
}

function settingKey(name: string): string {
  return name.toLowerCase().replaceAll('_', '');
}

function isFromEngine(hardware: XmlElement | undefined): boolean {
  const type = childNamed(childNamed(hardware, 'System'), 'VirtualSystemType')?.text ?? '';
  return /^\s*(?:ENGINE|RHEVM|RHEV|oVirt)\b/i.test(type);
}

function noteIgnoredSettings(settings: ReadonlyMap<string, XmlElement>, findings: Findings): void {
  const isImported = (word: string, { namespace }: XmlElement) =>
    IMPORTED_SETTINGS.has(word) || (OWN_SETTINGS.has(word) && namespace === OWN);
  const ignored = [...settings].filter(
    ([word, element]) => !isImported(word, element) && !element.name.endsWith('Section'),
  );
  if (ignored.length === 0) return;
  findings.addNote(`settings that are not imported: ${ignored.map(([, { name }]) => name).join(', ')}`);
}

/** Returns the notes that our own writer added. */
export function ownNotes({ system }: Envelope): string[] {
  return childrenNamed(system, 'Note', OWN).map(({ text }) => text);
}
