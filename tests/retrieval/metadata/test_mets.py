from __future__ import annotations

from pathlib import Path

from retrieval.metadata.mets import find_page, read_mets
from retrieval.metadata.text_regions import find_text_regions, read_text_regions

METS = b"""<?xml version="1.0"?>
<mets:mets xmlns:mets="http://www.loc.gov/METS/" xmlns:xlink="http://www.w3.org/1999/xlink"
    xmlns:mods="http://www.loc.gov/mods/v3">
  <mets:dmdSec ID="D"><mets:mdWrap><mets:xmlData><mods:mods>
    <mods:relatedItem><mods:titleInfo><mods:title>Series</mods:title></mods:titleInfo></mods:relatedItem>
    <mods:titleInfo><mods:title>Of Tulips</mods:title></mods:titleInfo>
  </mods:mods></mets:xmlData></mets:mdWrap></mets:dmdSec>
  <mets:fileSec>
    <mets:fileGrp USE="IMG">
      <mets:file ID="I1"><mets:FLocat xlink:href="file://img/a.png"/></mets:file>
      <mets:file ID="I2"><mets:FLocat xlink:href="https://library.example/x/b%201.jpg?size=full"/></mets:file>
      <mets:file ID="I3"><mets:FLocat xlink:href="../../etc/passwd"/></mets:file>
    </mets:fileGrp>
    <mets:fileGrp USE="FULLTEXT">
      <mets:file ID="T1"><mets:FLocat xlink:href="text/17.xml"/></mets:file>
    </mets:fileGrp>
  </mets:fileSec>
  <mets:structMap TYPE="PHYSICAL"><mets:div TYPE="physSequence" ID="P">
    <mets:div TYPE="page" ID="P2" ORDER="2" ORDERLABEL="xiv"><mets:fptr FILEID="I2"/></mets:div>
    <mets:div TYPE="page" ID="P1" ORDER="1" ORDERLABEL=" 12r "><mets:fptr FILEID="I1"/><mets:fptr FILEID="T1"/>
    </mets:div>
    <mets:div TYPE="page" ID="P3"><mets:fptr FILEID="I3"/></mets:div>
  </mets:div></mets:structMap>
  <mets:structMap TYPE="LOGICAL"><mets:div ID="L" TYPE="monograph" LABEL="whole">
    <mets:div ID="L1" LABEL="Book I"><mets:div ID="L2" LABEL="Chapter 3"/></mets:div>
  </mets:div></mets:structMap>
  <mets:structLink><mets:smLink xlink:from="L" xlink:to="P1"/>
    <mets:smLink xlink:from="L2" xlink:to="P1"/></mets:structLink>
</mets:mets>
"""

ALTO = b"""<alto xmlns="http://www.loc.gov/standards/alto/ns-v4#"><Layout><Page WIDTH="1000" HEIGHT="2000"><PrintSpace>
  <TextBlock HPOS="100" VPOS="200" WIDTH="500" HEIGHT="400">
    <TextLine HPOS="100" VPOS="200" WIDTH="500" HEIGHT="40">
      <String HPOS="1" VPOS="2" WIDTH="3" HEIGHT="4"><Shape><Polygon POINTS="0,0 1,1 2,2"/></Shape></String>
    </TextLine>
  </TextBlock>
  <TextBlock HPOS="0" VPOS="0" WIDTH="10" HEIGHT="20"/>
  <Illustration HPOS="500" VPOS="1000" WIDTH="100" HEIGHT="100"/>
</PrintSpace></Page></Layout></alto>"""

PAGE = b"""<PcGts xmlns="http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15">
<Page imageWidth="100" imageHeight="200"><TextRegion type="paragraph"><Coords points="10,20 50,20 50,60 10,60"/>
  <TextRegion type="drop-capital"><Coords points="10,20 15,20 15,25"/><TextLine>
    <Coords points="0,0 1,1 2,2"/></TextLine></TextRegion>
  <TextLine><Coords points="16,20 50,20 50,30"/><Word><Coords points="0,0 1,1 2,2"/></Word></TextLine></TextRegion>
  <ImageRegion><Coords><Point x="1" y="2"/><Point x="3" y="2"/><Point x="3" y="4"/></Coords></ImageRegion>
</Page></PcGts>"""


def test_mets_gives_title_order_labels_and_sections_and_no_path_that_leads_out():
    book = read_mets(METS)
    assert book is not None and book.title == "Of Tulips"
    reported = [(page.order, page.label, page.sections, page.files) for page in book.pages]
    assert reported == [
        (2, "xiv", (), ("b 1.jpg",)),
        (1, "12r", ("Book I", "Chapter 3"), ("img/a.png", "text/17.xml")),
        (3, "", (), ()),
    ]


def test_a_photo_is_a_page_by_its_path_or_its_name_and_its_text_is_where_mets_says(tmp_path):
    (tmp_path / "img").mkdir()
    (tmp_path / "text").mkdir()
    (tmp_path / "mets.xml").write_bytes(METS)
    (tmp_path / "text" / "17.xml").write_bytes(ALTO)
    found = find_page(tmp_path / "img" / "a.png")
    assert found is not None and found[2].label == "12r"
    assert find_text_regions(tmp_path / "img" / "a.png") == read_text_regions(ALTO)
    by_name = find_page(tmp_path / "b 1.tif")  # the library has it as JPEG
    assert by_name is not None and by_name[2].label == "xiv"
    assert find_page(tmp_path / "other.png") is None
    assert find_page(Path(f"{tmp_path}/img/a.png#2")) is None


def test_alto_and_page_give_lines_blocks_without_lines_and_pictures():
    alto, page = read_text_regions(ALTO), read_text_regions(PAGE)
    assert alto is not None and page is not None
    assert alto.text == (
        ((0.1, 0.1), (0.6, 0.1), (0.6, 0.12), (0.1, 0.12)),
        ((0.0, 0.0), (0.01, 0.0), (0.01, 0.01), (0.0, 0.01)),
    )
    assert alto.pictures == (((0.5, 0.5), (0.6, 0.5), (0.6, 0.55), (0.5, 0.55)),)
    assert page.text == (((0.16, 0.1), (0.5, 0.1), (0.5, 0.15)),)
    assert page.pictures == (((0.1, 0.1), (0.15, 0.1), (0.15, 0.125)), ((0.01, 0.01), (0.03, 0.01), (0.03, 0.02)))


def test_other_xml_damage_entities_and_depth_are_no_pages():
    bomb = b'<!DOCTYPE a [<!ENTITY e "x">]><alto>&e;</alto>'
    deep = b"<alto>" * 5_000
    for content in (b"", b"<annotation/>", ALTO[:-20], bomb, deep, METS[:-30], b"\xff\xfe\x00"):
        assert read_text_regions(content) is None
        assert read_mets(content) is None


def test_a_link_and_numbers_without_sense_are_passed_over(tmp_path):
    (tmp_path / "elsewhere").write_bytes(ALTO)
    (tmp_path / "a.xml").symlink_to(tmp_path / "elsewhere")
    assert find_text_regions(tmp_path / "a.jpg") is None
    (tmp_path / "b.xml").write_bytes(ALTO.replace(b'"1000"', b'"nan"').replace(b'"400"', b'"1e99"'))
    found = find_text_regions(tmp_path / "b.jpg")
    assert found is not None and not found.text and not found.pictures
