/** The keys of the sample fixtures, by user. */
export const sampleKeys = {
  ada: 'sample-key-ada-owner-of-northwind-0001',
  grace: 'sample-key-grace-admin-of-northwind-0002',
  linus: 'sample-key-linus-member-of-northwind-0003',
  priya: 'sample-key-priya-owner-of-lumen-0004',
  jonas: 'sample-key-jonas-member-of-lumen-0005',
  operator: 'sample-key-operator-reaches-everything-0000',
} as const

export type SampleUser = keyof typeof sampleKeys
