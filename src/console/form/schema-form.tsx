/**
 * A form made of a tool's JSON Schema. A value is edited as text where a field can hold it, and as JSON where not, for
 * that value alone. The value of an empty field is left out.
 */

import { useState } from 'preact/hooks'
import { Foreign } from '../parts/foreign.tsx'
import { Action, Field, type InputType } from '../parts/parts.tsx'

export interface Schema {
  readonly [keyword: string]: unknown
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly title?: string
  readonly description?: string
  readonly default?: unknown
  readonly format?: string
  readonly $ref?: string
}

interface FormProps {
  readonly schema: Schema
  readonly root: Schema
  readonly value: unknown
  readonly onChange: (value: unknown) => void
  /** The JSON Pointer of the value. */
  readonly at: string
  readonly label: string
  readonly isRequired?: boolean
}

/** The schema that a `$ref` into the same document names. */
function resolved(schema: Schema, root: Schema): Schema {
  const path = /^#\/((?:\$defs|definitions)\/.+)$/.exec(schema.$ref ?? '')?.[1]
  if (path === undefined) return schema
  let at: unknown = root
  for (const part of path.split('/'))
    at = (at as Record<string, unknown> | undefined)?.[part.replaceAll('~1', '/').replaceAll('~0', '~')]
  return { ...(at as Schema | undefined), ...schema, $ref: '' }
}

const typeOf = ({ type, properties, enum: values }: Schema): string | undefined => {
  if (values !== undefined) return 'enum'
  if (typeof type === 'string') return type
  const others = type?.filter((one) => one !== 'null')
  return others?.length === 1 ? others[0] : properties === undefined ? undefined : 'object'
}

export function SchemaForm({ schema: given, root, value, onChange, at, label, isRequired = false }: FormProps) {
  const schema = resolved(given, root)
  const type = typeOf(schema)
  const variants = schema.anyOf ?? schema.oneOf
  const shared = { at, label: schema.title ?? label, isRequired, hint: schema.description }
  if (variants !== undefined) return <Variants {...{ schema, root, value, onChange, variants, ...shared }} />
  if (type === 'object' && schema.properties !== undefined)
    return <Members {...{ schema, root, value, onChange, ...shared }} />
  if (type === 'array' && schema.items !== undefined)
    return <Items {...{ schema, root, value, onChange, items: schema.items, ...shared }} />
  if (type === 'enum') {
    const options = ['', ...(schema.enum ?? []).map((one) => JSON.stringify(one))]
    const chosen = value === undefined ? '' : JSON.stringify(value)
    return (
      <Labelled
        {...shared}
        value={chosen}
        options={options}
        onInput={(text) => onChange(text === '' ? undefined : JSON.parse(text))}
      />
    )
  }
  if (type === 'boolean') {
    const chosen = value === undefined ? '' : String(value)
    return (
      <Labelled
        {...shared}
        value={chosen}
        options={['', 'true', 'false']}
        onInput={(text) => onChange(text === '' ? undefined : text === 'true')}
      />
    )
  }
  if (type === 'string') {
    const inputType = inputTypes[schema.format ?? ''] ?? 'text'
    const text = typeof value === 'string' ? value : ''
    return (
      <Labelled
        {...shared}
        value={text}
        type={inputType}
        onInput={(typed) => onChange(typed === '' ? undefined : typed)}
      />
    )
  }
  return <JsonField {...shared} value={value} onChange={onChange} isNumber={type === 'number' || type === 'integer'} />
}

const inputTypes: Readonly<Record<string, InputType>> = {
  ...{ date: 'date', time: 'time', email: 'email', uri: 'url', password: 'password' },
}

interface Shared {
  readonly at: string
  readonly label: string
  readonly isRequired: boolean
  readonly hint: string | undefined
}

interface LabelledProps extends Shared {
  readonly value: string
  readonly onInput: (text: string) => void
  readonly options?: readonly string[]
  readonly type?: InputType
  readonly error?: string | undefined
  readonly isLong?: boolean
}

function Labelled({ at, hint, ...field }: LabelledProps) {
  return (
    <div>
      <Field name={at} {...field} />
      {hint !== undefined && (
        <small class="muted">
          <Foreign text={hint} />
        </small>
      )}
    </div>
  )
}

type PartProps = Shared & Pick<FormProps, 'schema' | 'root' | 'value' | 'onChange'>

const pointer = (at: string, name: string) => `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`

function Members({ schema, root, value, onChange, at, label }: PartProps) {
  const object = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  const change = (name: string, member: unknown) => {
    const { [name]: _, ...others } = object
    onChange(member === undefined ? others : { ...others, [name]: member })
  }
  const fields = Object.entries(schema.properties ?? {}).map(([name, member]) => (
    <SchemaForm
      key={name}
      schema={member}
      root={root}
      value={object[name]}
      onChange={(next) => change(name, next)}
      at={pointer(at, name)}
      label={name}
      isRequired={schema.required?.includes(name) === true}
    />
  ))
  if (at === '') return <div>{fields}</div>
  return (
    <fieldset>
      <legend>
        <Foreign text={label} />
      </legend>
      {fields}
    </fieldset>
  )
}

function Items({ root, value, onChange, at, label, items }: PartProps & { readonly items: Schema }) {
  const list = Array.isArray(value) ? value : []
  return (
    <fieldset>
      <legend>
        <Foreign text={label} />
      </legend>
      {list.map((item, index) => (
        <div key={index} class="item">
          <SchemaForm
            schema={items}
            root={root}
            value={item}
            onChange={(next) => onChange(list.with(index, next ?? null))}
            at={`${at}/${index}`}
            label={`${label} ${index + 1}`}
          />
          <Action name="remove" for={`${at}/${index}`} onClick={() => onChange(list.toSpliced(index, 1))}>
            Remove
          </Action>
        </div>
      ))}
      <Action name="add" for={at} onClick={() => onChange([...list, items.default ?? emptyOf(items)])}>
        Add
      </Action>
    </fieldset>
  )
}

const emptyOf = (schema: Schema): unknown =>
  ({ object: {}, array: [], string: '', boolean: false })[typeOf(schema) ?? ''] ?? null

function Variants({
  root,
  value,
  onChange,
  at,
  label,
  variants,
  isRequired,
}: PartProps & { readonly variants: readonly Schema[] }) {
  const [chosen, setChosen] = useState(0)
  const variant = variants[chosen] ?? {}
  return (
    <fieldset>
      <legend>
        <Foreign text={label} />
      </legend>
      <label class="field">
        <span>Which kind</span>
        <select
          data-field={`${at}#variant`}
          value={String(chosen)}
          onInput={(event) => {
            setChosen(Number(event.currentTarget.value))
            onChange(undefined)
          }}
        >
          {variants.map((one, index) => (
            <option key={index} value={String(index)}>
              {resolved(one, root).title ?? typeOf(resolved(one, root)) ?? `kind ${index + 1}`}
            </option>
          ))}
        </select>
      </label>
      <SchemaForm
        schema={variant}
        root={root}
        value={value}
        onChange={onChange}
        at={at}
        label={label}
        isRequired={isRequired}
      />
    </fieldset>
  )
}

interface JsonProps extends Shared {
  readonly value: unknown
  readonly onChange: (value: unknown) => void
  readonly isNumber: boolean
}

/** The JSON of one value: of a number, and of what no field can hold. */
function JsonField({ value, onChange, isNumber, ...shared }: JsonProps) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value))
  const [error, setError] = useState<string | undefined>()
  const type = (typed: string) => {
    setText(typed)
    try {
      onChange(typed === '' ? undefined : JSON.parse(typed))
      setError(undefined)
    } catch {
      setError(isNumber ? 'is not a number' : 'is not JSON')
    }
  }
  return <Labelled {...shared} value={text} onInput={type} error={error} isLong={!isNumber} />
}
