import { expect, test } from 'bun:test'
import { isCarried, isCompiled } from '../src/compiled.ts'

test('files of the executable are told from others, on Windows too', () => {
  expect(['/$bunfs/root/postern', 'B:/~BUN/root/postern.exe', 'B:\\~BUN\\root\\postern.exe'].map(isCarried)).toEqual([
    true,
    true,
    true,
  ])
  expect(['/home/ada/postern/src/main.ts', 'B:/postern/src/main.ts', '/$bunfs-not/main.ts'].map(isCarried)).toEqual([
    false,
    false,
    false,
  ])
  expect(isCompiled).toBe(false)
})
