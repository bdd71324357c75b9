// Where the server lies: what stands before all of its addresses, such as "/photos"; "" where it has a host of its own.

export const root = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");
