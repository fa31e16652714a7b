/** Reading forms, strictly. */

import { expect, test } from 'bun:test'
import { formFieldsMax, readForm } from '../../src/http/form.ts'
import { formBytesMax } from '../../src/limits.ts'
import { withAllowance } from '../support/allowance.ts'

const read = (body: string | Uint8Array<ArrayBuffer>, type = 'application/x-www-form-urlencoded') =>
  readForm(withAllowance(new Request('http://here/', { method: 'POST', headers: { 'content-type': type }, body })))

test('fields come in order; one that is sent once is a value, one that may repeat a list', async () => {
  const form = await read('a=1&b=x+y%26&a=2&c=')
  expect([...form.keys()]).toEqual(['a', 'b', 'a', 'c'])
  expect([form.getAll('a'), form.one('b'), form.one('c'), form.one('d')]).toEqual([['1', '2'], 'x y&', '', undefined])
  expect(() => form.one('a')).toThrow('a: is given twice')
})

test('another type, too much, and bytes that are no text are refused', async () => {
  await expect(read('{}', 'application/json')).rejects.toThrow(
    'content-type: must be application/x-www-form-urlencoded',
  )
  expect((await read('a'.repeat(formBytesMax))).size).toBe(1)
  await expect(read('a'.repeat(formBytesMax + 1))).rejects.toThrow('the form is too large')
  const fields = (count: number) => Array.from({ length: count }, (_, i) => `${i}=`).join('&')
  expect((await read(fields(formFieldsMax))).size).toBe(formFieldsMax)
  await expect(read(fields(formFieldsMax + 1))).rejects.toThrow(`more than ${formFieldsMax} fields`)
  await expect(read('a=%ff')).rejects.toThrow('a: is not percent-encoded UTF-8')
  await expect(read(Buffer.from([0x61, 0x3d, 0xff]))).rejects.toThrow('the form is not percent-encoded UTF-8')
})
