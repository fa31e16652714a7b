/** A form by a tool's JSON Schema. A value that no field suits is edited as JSON; a field left empty is left out. */

import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { asObject, isNumber, parseJson, readJson } from '../json.ts'
import { Field, type InputType } from '../parts/field.tsx'
import { Foreign } from '../parts/foreign.tsx'
import { Action } from '../parts/parts.tsx'
import {
  addedValue,
  boundsOf,
  choicesOf,
  emptied,
  firstValue,
  isNullable,
  joined,
  type Kind,
  kindOf,
  pointer,
  type Schema,
  variantOf,
  variantsOf,
  whole,
  wrongWith,
} from './form-schema.ts'

/** Of the whole form. */
export interface FormOf {
  readonly root: Schema
  /** Whether somebody has tried to call: then all that is wrong is shown. */
  readonly isTried: boolean
  /** Values that may still be painted before others are opened on demand: a schema may be as large as its writer wants. */
  readonly left: { count: number }
  /** The value that the server refused, and its words. */
  readonly refused: { readonly at: string; readonly words: string } | undefined
}

interface ValueProps {
  readonly form: FormOf
  readonly schema: Schema
  readonly value: unknown
  readonly onChange: (value: unknown) => void
  /** The JSON Pointer of the value. */
  readonly at: string
  readonly label: string
  readonly isRequired: boolean
  /** The targets of references that it is in: what leads to one of them again is opened on demand. */
  readonly inside: readonly Schema[]
  /** Members that have fields in another part of the form. */
  readonly elsewhere?: readonly string[]
  /** Whether another part of the form shows the members that no schema names. */
  readonly hidesOthers?: boolean
}

export function SchemaForm({ schema: given, ...props }: ValueProps) {
  const [isOpen, setOpen] = useState(false)
  const { form, at, value, onChange, inside } = props
  const targets: Schema[] = []
  const schema = whole(given, form.root, targets)
  form.left.count -= 1
  const isFar = form.left.count < 0 || targets.some((one) => inside.includes(one))
  if (isFar && !isOpen && value === undefined)
    return (
      <p>
        <Action name="open" for={at} onClick={() => setOpen(true)}>
          Add <Foreign text={props.label} />
        </Action>
      </p>
    )
  if (schema.readOnly === true) return null
  const label = schema.title ?? props.label
  // From here on the schema is in one piece.
  const part = { ...props, schema, label, inside: [...inside, ...targets] }
  if (!isNullable(schema)) return <Value {...part} />
  return (
    <>
      {value !== null && <Value {...part} />}
      <label class="check">
        <input
          type="checkbox"
          data-field={`${at}#null`}
          checked={value === null}
          onChange={() => onChange(value === null ? undefined : null)}
        />{' '}
        <Foreign text={label} /> is null
      </label>
    </>
  )
}

function Value(props: ValueProps) {
  const { schema, value } = props
  if (variantsOf(schema).length > 0) return <Variants {...props} />
  const kind = kindOf(schema)
  const isOther = (kind === 'object' && asObject(value) === undefined) || (kind === 'array' && !Array.isArray(value))
  // The fields of an object or a list would not show it.
  if (value !== undefined && isOther) return <Text {...props} />
  switch (kind) {
    case 'object':
      // Of the root, such a schema is a form without fields.
      return props.at !== '' && isWithoutFields(schema) ? <Text {...props} /> : <Members {...props} />
    case 'array':
      return schema.items === undefined && schema.prefixItems === undefined ? <Text {...props} /> : <Items {...props} />
    case 'enum':
    case 'boolean':
    case 'null':
      return <Choice {...props} />
    default:
      return <Text {...props} />
  }
}

/** Whether an object may have any members, and a schema names none of them. */
const isWithoutFields = ({ properties, additionalProperties: others, patternProperties }: Schema) =>
  Object.keys(properties ?? {}).length === 0 && (patternProperties !== undefined || others === undefined)

type GroupProps = Pick<ValueProps, 'at' | 'label' | 'schema' | 'isRequired'> & { readonly children: ComponentChildren }

function Group({ at, label, schema, isRequired, children }: GroupProps) {
  if (at === '') return <div>{children}</div>
  return (
    <fieldset>
      <legend>
        <Foreign text={label} />
        {isRequired && <small class="muted"> (required)</small>}
      </legend>
      {schema.description !== undefined && <Foreign as="small" class="muted" text={schema.description} />}
      {children}
    </fieldset>
  )
}

const jsonOf = (value: unknown) => JSON.stringify(value)
/** A text as it is, and the JSON of any other value. */
const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))

/** The properties of a field that do not depend on the kind of its value. */
const saidOf = ({ schema, at, label, isRequired, form }: ValueProps) => ({
  ...{ name: at, label, isRequired, foreignHint: schema.description, isShown: form.isTried },
  error: form.refused?.at === at ? form.refused.words : undefined,
})

/** One of some values. The text of an option is its JSON. */
function Choice(props: ValueProps) {
  const { schema, value, onChange, isRequired } = props
  const choices = choicesOf(schema)
  return (
    <Field
      {...saidOf(props)}
      value={value === undefined ? '' : JSON.stringify(value)}
      options={['', ...choices.map(jsonOf)]}
      names={['', ...choices.map(textOf)]}
      nothing={isRequired ? 'choose…' : 'left out'}
      onInput={(text) => onChange(text === '' ? undefined : parseJson(text))}
      wrong={wrongWith(schema, value, isRequired)}
    />
  )
}

const inputTypes: Readonly<Record<string, InputType>> = { date: 'date', email: 'email', uri: 'url', password: 'secret' }

function inputTypeOf({ writeOnly, format = '' }: Schema, kind: Kind): InputType {
  if (writeOnly === true) return 'secret'
  if (kind === 'string') return inputTypes[format] ?? 'lines'
  return kind === 'number' || kind === 'integer' ? 'number' : 'json'
}

/** A text, a number, or the JSON of a value that no other field holds. */
function Text(props: ValueProps) {
  const { schema, value: given, onChange, isRequired, form } = props
  const kind = kindOf(schema)
  const isText = kind === 'string'
  const isNumeric = kind === 'number' || kind === 'integer'
  // An item that is empty yet.
  const value = given === null && (isText || isNumeric) ? undefined : given
  const written = value === undefined ? '' : isText ? textOf(value) : JSON.stringify(value)
  const [typed, setTyped] = useState(written)
  // A value that came from elsewhere, and not from this field.
  const shown = sameValue(readAs(typed, isText), value) ? typed : written
  const read = readAs(shown, isText)
  const isMisread = read === unreadable || (isNumeric && read !== undefined && !isNumber(read))
  const misread = isNumeric ? 'is not a number' : 'is not JSON'
  const [example] = schema.examples ?? []
  return (
    <Field
      {...saidOf(props)}
      value={shown}
      onInput={(text) => {
        setTyped(text)
        const next = readAs(text, isText)
        onChange(next === unreadable ? undefined : next)
      }}
      type={inputTypeOf(schema, kind)}
      {...(example !== undefined && { placeholder: textOf(example) })}
      hint={boundsOf(schema)}
      wrong={isMisread ? misread : wrongWith(schema, read, isRequired)}
      isShown={form.isTried || read === unreadable}
    />
  )
}

/** Stands for a text that is no JSON: the field keeps it, and the call is not made. */
const unreadable = Symbol('unreadable')

function readAs(text: string, isText: boolean): unknown {
  if (text === '') return undefined
  const read = isText ? text : readJson(text)
  return read === undefined ? unreadable : read
}

const sameValue = (read: unknown, value: unknown) =>
  read === unreadable ? value === undefined || value === null : JSON.stringify(read) === JSON.stringify(value)

function Members({ form, schema, value, onChange, at, label, inside, isRequired, ...props }: ValueProps) {
  const { elsewhere = [], hidesOthers = false } = props
  const object = asObject(value) ?? {}
  const properties = schema.properties ?? {}
  const change = (name: string, member: unknown) => {
    if (member !== undefined) return onChange({ ...object, [name]: member })
    const { [name]: _, ...others } = object
    // An optional object leaves with its last member.
    onChange(Object.keys(others).length === 0 && !isRequired && at !== '' ? undefined : others)
  }
  const { additionalProperties: others } = schema
  return (
    <Group {...{ at, label, isRequired, schema }}>
      {Object.entries(properties).map(([name, member]) => (
        <SchemaForm
          key={name}
          {...{ form, label: name, schema: member, at: pointer(at, name), inside }}
          value={Object.hasOwn(object, name) ? object[name] : undefined}
          onChange={(next) => change(name, next)}
          isRequired={schema.required?.includes(name) === true && (value !== undefined || at === '')}
        />
      ))}
      <Others
        {...{ form, at, inside, change, schema: typeof others === 'object' ? others : {} }}
        mayAdd={others === true || typeof others === 'object'}
        isTaken={(name) => Object.hasOwn(properties, name) || Object.hasOwn(object, name)}
        members={Object.entries(object).filter(
          ([name]) => !hidesOthers && !Object.hasOwn(properties, name) && !elsewhere.includes(name),
        )}
      />
    </Group>
  )
}

interface OthersProps extends Pick<ValueProps, 'form' | 'at' | 'inside' | 'schema'> {
  readonly members: readonly (readonly [name: string, value: unknown])[]
  readonly mayAdd: boolean
  readonly isTaken: (name: string) => boolean
  readonly change: (name: string, member: unknown) => void
}

/** Members that a schema does not name: somebody types their names here, or has written them as JSON. */
function Others({ form, at, inside, schema, members, mayAdd, isTaken, change }: OthersProps) {
  const [name, setName] = useState('')
  const wrong = name === '' ? undefined : isTaken(name) ? 'is there already' : 'is not added yet'
  const add = () => {
    if (name === '' || isTaken(name)) return
    change(name, addedValue(schema, form.root))
    setName('')
  }
  return (
    <>
      {members.map(([one, value]) => (
        <div key={one} class="item">
          <SchemaForm
            {...{ form, schema, value, label: one, at: pointer(at, one), isRequired: true, inside }}
            onChange={(next) => change(one, next ?? emptied(schema, form.root))}
          />
          <Action name="remove" for={pointer(at, one)} onClick={() => change(one, undefined)} label="Remove" />
        </div>
      ))}
      {mayAdd && (
        <div class="item">
          <Field {...{ name: `${at}#name`, label: 'Another name', value: name, onInput: setName, wrong }} />
          <Action name="add" for={at} onClick={add} label="Add" />
        </div>
      )}
    </>
  )
}

function Items({ form, schema, value, onChange, at, label, inside, isRequired }: ValueProps) {
  const list = Array.isArray(value) ? value : []
  const { items, prefixItems = [] } = schema
  const schemaOf = (index: number): Schema => prefixItems[index] ?? (typeof items === 'object' ? items : {})
  const add = () => onChange([...list, addedValue(schemaOf(list.length), form.root)])
  const mayAdd = list.length < prefixItems.length || items !== false
  const remove = (index: number) => {
    const left = list.toSpliced(index, 1)
    // An optional list leaves with its last item.
    onChange(left.length === 0 && !isRequired ? undefined : left)
  }
  return (
    <Group {...{ at, label, isRequired, schema }}>
      {list.map((item, index) => {
        const here = pointer(at, index)
        const moveUp = () => onChange(list.with(index, list[index - 1]).with(index - 1, item))
        return (
          <div key={index} class="item">
            <SchemaForm
              {...{ form, schema: schemaOf(index), value: item, at: here, isRequired: true, inside }}
              label={`${label} ${index + 1}`}
              onChange={(next) => onChange(list.with(index, next ?? emptied(schemaOf(index), form.root)))}
            />
            {index > 0 && <Action name="up" for={here} onClick={moveUp} label="Move up" />}
            <Action name="remove" for={here} onClick={() => remove(index)} label="Remove" />
          </div>
        )
      })}
      {mayAdd && <Action name="add" for={at} onClick={add} label="Add" />}
      {boundsOf(schema) !== '' && <Foreign as="small" class="muted" text={boundsOf(schema)} />}
    </Group>
  )
}

/** The choice of `anyOf`, of `oneOf` or of a list of types; members that all variants share are above it. */
function Variants(props: ValueProps) {
  const { form, schema, value, onChange, at, label, isRequired } = props
  const variants = variantsOf(schema)
  const [picked, setPicked] = useState<number | undefined>()
  // While somebody types here, the kind stays: a value from elsewhere may be of another.
  const typed = useRef<{ readonly value: unknown } | undefined>(undefined)
  const isTyped = picked !== undefined && typed.current !== undefined && typed.current.value === value
  const chosen = isTyped ? picked : variantOf(value, variants, form.root, picked)
  const type = (next: unknown) => {
    typed.current = { value: next }
    setPicked(chosen)
    onChange(next)
  }
  const { anyOf, oneOf, ...shared } = schema
  const isShared = (anyOf ?? oneOf) !== undefined && shared.properties !== undefined
  const variant = whole(variants[chosen] ?? {}, form.root)
  // Such a variant says no more than which of the shared members are required.
  const isRequirement = isShared && kindOf(variant) === 'json'
  const pick = (index: number) => {
    setPicked(index)
    const first = firstValue(variants[index] ?? {}, form.root, isRequired || at === '')
    // A default may be of another kind.
    const isOfKind = variantOf(first, variants, form.root, index) === index
    if (!isShared) return onChange(isOfKind ? first : undefined)
    const kept = Object.entries(asObject(value) ?? {}).filter(([name]) => Object.hasOwn(shared.properties ?? {}, name))
    onChange({ ...Object.fromEntries(kept), ...asObject(first) })
  }
  return (
    <Group {...{ at, label, isRequired, schema: shared }}>
      {isShared && (
        <Members
          {...props}
          schema={isRequirement ? joined(shared, variant) : shared}
          elsewhere={[...(props.elsewhere ?? []), ...Object.keys(variant.properties ?? {})]}
        />
      )}
      <Field
        name={`${at}#variant`}
        label="Kind"
        value={String(chosen)}
        options={variants.map((_, index) => String(index))}
        names={variants.map((one, index) => nameOf(whole(one, form.root), index))}
        onInput={(index) => pick(Number(index))}
      />
      {!isRequirement && (
        <SchemaForm
          key={chosen}
          {...props}
          schema={variants[chosen] ?? {}}
          onChange={type}
          hidesOthers={isShared || props.hidesOthers === true}
        />
      )}
    </Group>
  )
}

function nameOf(schema: Schema, index: number): string {
  const kind = kindOf(schema)
  if (schema.title !== undefined) return schema.title
  if (kind === 'enum') return choicesOf(schema).map(jsonOf).join(' or ')
  return kind === 'json' ? `kind ${index + 1}` : kind
}
